#include "scalecom/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "scalecom/core/array.h"
#include "tests/device.h"

// Every pass against one number at a time, on the device of the test.
namespace scalecom::kernels::elementwise {
namespace {

using core::DType;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
constexpr DType kNarrow[] = {DType::kFloat16, DType::kBFloat16};
// Odd ends, and more than one block.
constexpr std::int64_t kCounts[] = {0, 1, 3, 7, 64, 1000, 70001, 300000};
constexpr float kInf = std::numeric_limits<float>::infinity();

class Elementwise : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::scalecom::testing::device().is_cuda())
      stream_ = core::Stream::cuda(::scalecom::testing::device());
  }

  /// On the device, `shift` elements from where it is aligned best.
  template <typename T>
  struct Placed {
    core::Array<T> array;
    std::int64_t shift;
    T* data() { return array.data() + shift; }
  };
  template <typename T>
  Placed<T> place(const std::vector<T>& values, std::int64_t shift = 0) {
    const auto count = static_cast<std::int64_t>(values.size());
    Placed<T> placed{core::Array<T>(stream_.device(), count + shift + 1), shift};
    copy(placed.data(), values.data(), count);
    return placed;
  }
  template <typename T>
  std::vector<T> fetch(Placed<T>& placed) {
    std::vector<T> values(static_cast<std::size_t>(placed.array.size() - placed.shift - 1));
    copy(values.data(), placed.data(), static_cast<std::int64_t>(values.size()));
    return values;
  }

  core::Stream stream_;

 private:
  template <typename T>
  void copy(T* to, const T* from, std::int64_t count) {
    const auto bytes = count * static_cast<std::int64_t>(sizeof(T));
    if (stream_.device().is_cuda()) {
      core::cuda::copy(to, from, bytes, stream_);
      core::cuda::synchronize(stream_);
    } else if (bytes > 0) {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
    }
  }
};

std::vector<float> numbers(std::int64_t count, std::uint32_t seed, bool special = false) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  const float odd[] = {0.0F,  -0.0F, 1e-45F, -1e-40F,  6e-8F,
                       65504, 65520, -70000, 3.39e38F, -3.4e38F};
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = special && random() % 8 == 0 ? odd[random() % std::size(odd)] : draw(random);
  }
  return values;
}

std::vector<std::uint16_t> narrowed(const std::vector<float>& values, DType type) {
  std::vector<std::uint16_t> bits;
  for (const float value : values)
    bits.push_back(core::to_bits16(type, core::round_to(type, value)));
  return bits;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}

TEST_F(Elementwise, LoadAndStore) {
  for (const DType type : kTypes) {
    for (const std::int64_t count : kCounts) {
      for (const std::int64_t shift : {0, 1}) {
        const std::vector<float> values = numbers(count, 1, true);
        const std::vector<std::uint16_t> bits = narrowed(values, type);
        std::vector<float> expected;
        for (std::size_t i = 0; i < values.size(); ++i) {
          const float wide = type == DType::kFloat32 ? values[i] : core::from_bits16(type, bits[i]);
          expected.push_back(wide * 0.25F);
        }
        auto out = place(std::vector<float>(values.size()), shift);
        auto flag = place(std::vector<Flag>{0});
        if (type == DType::kFloat32) {
          auto grad = place(values, shift);
          load(grad.data(), type, count, 0.25F, out.data(), stream_);
          EXPECT_TRUE(same(fetch(out), expected)) << count;
          load(grad.data(), type, count, 0.25F, grad.data(), stream_);
          EXPECT_TRUE(same(fetch(grad), expected)) << "in place " << count;
          store(out.data(), count, grad.data(), type, flag.data(), stream_);
          EXPECT_TRUE(same(fetch(grad), expected)) << count;
        } else {
          auto grad = place(bits, shift);
          load(grad.data(), type, count, 0.25F, out.data(), stream_);
          EXPECT_TRUE(same(fetch(out), expected)) << core::to_string(type) << count;
          auto wide = place(values, shift);
          store(wide.data(), count, grad.data(), type, flag.data(), stream_);
          std::vector<std::uint16_t> stored;
          for (const float value : values) stored.push_back(core::to_bits16(type, value));
          EXPECT_EQ(fetch(grad), stored) << core::to_string(type) << count;
        }
      }
    }
  }
}

TEST_F(Elementwise, AFlagThatIsSetMakesAllNan) {
  auto flag = place(std::vector<Flag>{1});
  auto in = place(numbers(70001, 2));
  auto wide = place(std::vector<float>(70001, 1.0F));
  store(in.data(), 70001, wide.data(), DType::kFloat32, flag.data(), stream_);
  for (const float value : fetch(wide)) ASSERT_TRUE(std::isnan(value));
  for (const DType type : kNarrow) {
    auto narrow = place(std::vector<std::uint16_t>(70001, 1));
    store(in.data(), 70001, narrow.data(), type, flag.data(), stream_);
    for (const std::uint16_t bits : fetch(narrow)) {
      ASSERT_TRUE(std::isnan(core::from_bits16(type, bits)));
    }
  }
}

TEST_F(Elementwise, FindsWhatIsNotFinite) {
  for (const std::int64_t count : {1, 5, 1000, 300000}) {
    for (const float bad : {kInf, -kInf, std::nanf("")}) {
      for (const std::int64_t at : {std::int64_t{0}, count / 2, count - 1}) {
        std::vector<float> values = numbers(count, 3);
        values[0] = 3.4e38F;
        auto flag = place(std::vector<Flag>{0});
        auto fine = place(values);
        check_finite(fine.data(), count, flag.data(), stream_);
        EXPECT_EQ(fetch(flag)[0], 0);
        values[static_cast<std::size_t>(at)] = bad;
        auto spoilt = place(values);
        check_finite(spoilt.data(), count, flag.data(), stream_);
        EXPECT_EQ(fetch(flag)[0], 1) << bad << " at " << at << " of " << count;
      }
    }
  }
}

TEST_F(Elementwise, NarrowAndWiden) {
  for (const DType type : kNarrow) {
    for (const std::int64_t count : kCounts) {
      const std::vector<float> values = numbers(count, 4, true);
      auto in = place(values);
      auto bits = place(std::vector<std::uint16_t>(values.size()));
      narrow(in.data(), count, type, bits.data(), stream_);
      const std::vector<std::uint16_t> expected = narrowed(values, type);
      EXPECT_EQ(fetch(bits), expected) << core::to_string(type) << count;
      auto back = place(std::vector<float>(values.size()));
      widen(bits.data(), count, type, back.data(), stream_);
      std::vector<float> wide;
      for (const std::uint16_t one : expected) wide.push_back(core::from_bits16(type, one));
      EXPECT_TRUE(same(fetch(back), wide)) << core::to_string(type) << count;
    }
  }
}

TEST_F(Elementwise, MeansOfNarrowValuesKeepWhatRoundingTook) {
  for (const DType type : kNarrow) {
    for (const int ranks : {1, 2, 3, 8}) {
      for (const std::int64_t count : {1, 7, 5000, 70001}) {
        std::vector<std::uint16_t> arrived;
        for (int r = 0; r < ranks; ++r) {
          const auto one =
              narrowed(numbers(count, 5 + static_cast<std::uint32_t>(r), r == 0), type);
          arrived.insert(arrived.end(), one.begin(), one.end());
        }
        auto in = place(arrived);
        auto mean = place(std::vector<std::uint16_t>(static_cast<std::size_t>(count)));
        auto rounding = place(std::vector<float>(static_cast<std::size_t>(count)));
        mean_of_narrow(in.data(), count, ranks, type, mean.data(), rounding.data(), stream_);
        const auto means = fetch(mean);
        const auto left = fetch(rounding);
        for (std::size_t i = 0; i < means.size(); ++i) {
          float sum = core::from_bits16(type, arrived[i]);
          for (int r = 1; r < ranks; ++r) {
            sum += core::from_bits16(type, arrived[static_cast<std::size_t>(r) * means.size() + i]);
          }
          const auto n = static_cast<float>(ranks);
          const float rounded = core::round_to(type, sum * (1.0F / n));
          ASSERT_EQ(means[i], core::to_bits16(type, rounded)) << i;
          ASSERT_EQ(std::bit_cast<std::uint32_t>(left[i]),
                    std::bit_cast<std::uint32_t>(std::fma(-n, rounded, sum)))
              << i;
        }
      }
    }
  }
}

TEST_F(Elementwise, AddQuotientAndScale) {
  for (const std::int64_t count : kCounts) {
    const std::vector<float> from = numbers(count, 6, true);
    std::vector<float> to = numbers(count, 7);
    auto from_placed = place(from, 1);
    auto to_placed = place(to);
    add_quotient(to_placed.data(), from_placed.data(), count, 0.1F, 0.25F, stream_);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i] / 0.1F * 0.25F;
    EXPECT_TRUE(same(fetch(to_placed), to)) << count;
    scale(to_placed.data(), count, 1.0F / 3.0F, stream_);
    for (float& value : to) value *= 1.0F / 3.0F;
    EXPECT_TRUE(same(fetch(to_placed), to)) << count;
  }
}

TEST_F(Elementwise, ScaleAllTakesItsFactorFromTheDevice) {
  std::vector<std::vector<float>> expected;
  std::vector<Placed<float>> placed;
  for (int i = 0; i < 150; ++i) {  // more than one launch takes
    expected.push_back(numbers(kCounts[i % std::size(kCounts)] % 5000, static_cast<unsigned>(i)));
    placed.push_back(place(expected.back(), i % 3));
  }
  std::vector<Numbers> arrays;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    arrays.push_back({placed[i].data(), static_cast<std::int64_t>(expected[i].size())});
  }
  for (const float factor : {1.0F, 0.5F, 1.0F / 3.0F}) {
    auto number = place(std::vector<float>{factor});
    scale_all(arrays, number.data(), stream_);
    for (auto& array : expected) {
      for (float& value : array) value *= factor;
    }
    for (std::size_t i = 0; i < placed.size(); ++i) {
      ASSERT_TRUE(same(fetch(placed[i]), expected[i])) << i;
    }
  }
}

TEST_F(Elementwise, FollowTellsHowANumberChanged) {
  auto last = place(std::vector<float>{0.0F});
  auto factor = place(std::vector<float>{7.0F});
  auto fell = place(std::vector<Flag>{7});
  const auto look = [&](float number) {
    auto now = place(std::vector<float>{number});
    follow(now.data(), last.data(), factor.data(), fell.data(), stream_);
    EXPECT_EQ(fetch(last)[0], number);
    return std::pair(fetch(factor)[0], fetch(fell)[0]);
  };
  EXPECT_EQ(look(1024), std::pair(1.0F, 0)) << "there is nothing to compare with";
  EXPECT_EQ(look(1024), std::pair(1.0F, 0));
  EXPECT_EQ(look(2048), std::pair(2.0F, 0));
  EXPECT_EQ(look(512), std::pair(0.25F, 1));
  EXPECT_EQ(look(512), std::pair(1.0F, 0));
}

}  // namespace
}  // namespace scalecom::kernels::elementwise
