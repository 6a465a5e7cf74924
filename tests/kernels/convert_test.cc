// All 65536 patterns of the 16-bit types, and all that lies between them, in every table.
#include <numeric>

#include "tests/kernels/fixture.h"

namespace scalecom::kernels::testing {
namespace {

class Convert : public ::testing::TestWithParam<const Table*> {};

constexpr DType kNarrow[] = {DType::kFloat16, DType::kBFloat16};
constexpr std::int64_t kPatterns = 65536;

std::vector<std::uint16_t> all_patterns() {
  std::vector<std::uint16_t> patterns(kPatterns);
  std::iota(patterns.begin(), patterns.end(), std::uint16_t{0});
  return patterns;
}

TEST_P(Convert, WidenIsTheDefinition) {
  const auto patterns = all_patterns();
  for (const DType type : kNarrow) {
    std::vector<float> wide(kPatterns);
    GetParam()->widen(patterns.data(), kPatterns, type, wide.data());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
                std::bit_cast<std::uint32_t>(core::from_bits16(type, patterns[i])))
          << core::to_string(type) << " pattern " << i;
    }
  }
}

TEST_P(Convert, WidenedPatternsComeBack) {
  const auto patterns = all_patterns();
  for (const DType type : kNarrow) {
    std::vector<float> wide(kPatterns);
    std::vector<std::uint16_t> back(kPatterns);
    GetParam()->widen(patterns.data(), kPatterns, type, wide.data());
    GetParam()->narrow(wide.data(), kPatterns, type, back.data());
    const std::uint16_t quiet = type == DType::kFloat16 ? 0x0200U : 0x0040U;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const auto made_quiet = static_cast<std::uint16_t>(patterns[i] | quiet);
      ASSERT_EQ(back[i], std::isnan(wide[i]) ? made_quiet : patterns[i]) << core::to_string(type);
    }
  }
}

// Around every representable number: itself, its neighbours in fp32, and the halfway points.
TEST_P(Convert, NarrowIsTheDefinition) {
  for (const DType type : kNarrow) {
    const std::uint32_t half = type == DType::kFloat16 ? 0x1000U : 0x8000U;
    std::vector<float> wide;
    for (const std::uint16_t pattern : all_patterns()) {
      const auto bits = std::bit_cast<std::uint32_t>(core::from_bits16(type, pattern));
      for (const std::uint32_t offset : {0U, 1U, half - 1U, half, half + 1U, 0U - 1U}) {
        wide.push_back(std::bit_cast<float>(bits + offset));
      }
    }
    std::mt19937 random(9);
    for (int i = 0; i < 200000; ++i) {
      wide.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    }
    std::vector<std::uint16_t> narrow(wide.size());
    GetParam()->narrow(wide.data(), static_cast<std::int64_t>(wide.size()), type, narrow.data());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      ASSERT_EQ(narrow[i], core::to_bits16(type, core::round_to(type, wide[i])))
          << core::to_string(type) << ' ' << std::bit_cast<std::uint32_t>(wide[i]);
    }
  }
}

TEST_P(Convert, AnyStartAndLength) {
  for (const DType type : kNarrow) {
    for (std::int64_t length = 0; length < 70; ++length) {
      Guarded<float> wide(length, length % 11);
      for (std::int64_t i = 0; i < length; ++i) wide[i] = static_cast<float>(i) / 3;
      Guarded<std::uint16_t> narrow(length, length % 17);
      Guarded<std::uint16_t> expected(length, length % 17);
      for (std::int64_t i = 0; i < length; ++i) expected[i] = core::to_bits16(type, wide[i]);
      GetParam()->narrow(wide.data(), length, type, narrow.data());
      ASSERT_TRUE(narrow.same(expected));
      for (std::int64_t i = 0; i < length; ++i) wide[i] = core::round_to(type, wide[i]);
      Guarded<float> back(length, length % 13);
      GetParam()->widen(narrow.data(), length, type, back.data());
      ASSERT_TRUE(back.same(wide));
    }
  }
}

std::vector<const Table*> all_tables() {
  return {tables().begin(), tables().end()};
}

INSTANTIATE_TEST_SUITE_P(Isa, Convert, ::testing::ValuesIn(all_tables()),
                         [](const auto& test) { return std::string(test.param->isa); });

}  // namespace
}  // namespace scalecom::kernels::testing
