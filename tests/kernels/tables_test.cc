// Every table gives the reference's bits and leaves all else alone.
#include "scalecom/kernels/reference/reference.h"
#include "tests/kernels/fixture.h"

namespace scalecom::kernels::testing {
namespace {

constexpr std::int64_t kChunks[] = {1, 2, 3, 16, 17, 25, 64, 100, 127, 400, 1000, 5000};
constexpr Filter kFilters[] = {{1.0F, 1.0F}, {0.1F, 1.0F}, {0.3F, 0.9F}};

class Tables : public ::testing::TestWithParam<const Table*> {
 protected:
  const Table& table() const { return *GetParam(); }
  const Table& reference() const { return reference::table(); }
};

std::vector<std::int64_t> lengths(std::int64_t chunk) {
  return {0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk + chunk / 2, 97, 1009};
}

// All combinations of what a tensor can be, with a seed and alignments of their own.
template <typename Body>
void for_each_problem(const std::vector<std::int64_t>& sizes, Body body) {
  std::uint32_t seed = 1;
  for (const DType dtype : kTypes) {
    for (const Data data : kAllData) {
      for (const std::int64_t length : sizes) {
        ++seed;
        SCOPED_TRACE(::testing::Message() << core::to_string(dtype) << ", data "
                                          << static_cast<int>(data) << ", length " << length);
        body(Problem(dtype, length, data, seed, seed % 37, seed % 19), kFilters[seed % 3], seed);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

const std::vector<std::int64_t> kSizes = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 251, 4099};

TEST_P(Tables, Accumulate) {
  for_each_problem(kSizes, [&](const Problem& problem, Filter filter, std::uint32_t seed) {
    const std::int64_t length = problem.memory.size();
    const std::int64_t begin = std::min<std::int64_t>(seed % 5, length);
    const std::int64_t end = std::max<std::int64_t>(begin, length - seed % 3);
    Problem expected(problem);
    Problem actual(problem);
    const bool finite = reference().accumulate(expected.tensor(), filter, begin, end);
    EXPECT_EQ(table().accumulate(actual.tensor(), filter, begin, end), finite);
    actual.expect_same(expected);
  });
}

TEST_P(Tables, Lead) {
  for (const std::int64_t chunk : kChunks) {
    SCOPED_TRACE(::testing::Message() << "chunk " << chunk);
    for_each_problem(
        lengths(chunk), [&](const Problem& problem, Filter filter, std::uint32_t seed) {
          const std::int64_t chunks = chunks_of(problem.memory.size(), chunk);
          const DType values = kTypes[seed % 3];
          Problem expected(problem);
          Problem actual(problem);
          Items expected_items(chunks);
          Items items(chunks);
          const bool finite = reference().lead(expected.tensor(), filter, values, chunk, 0, chunks,
                                               expected_items.taken());
          // In two calls, which meet in the middle of a cache line.
          const std::int64_t middle = chunks / 2;
          const Tensor tensor = actual.tensor();
          const bool second =
              table().lead(tensor, filter, values, chunk, middle, chunks, items.taken());
          const bool first = table().lead(tensor, filter, values, chunk, 0, middle, items.taken());
          EXPECT_EQ(first && second, finite);
          actual.expect_same(expected);
          items.expect_same(expected_items);
        });
  }
}

TEST_P(Tables, LeadOfPartLeavesTheRest) {
  const Problem problem(DType::kFloat32, 1009, Data::kNormal, 5, 3, 7);
  Problem expected(problem);
  Problem actual(problem);
  Items expected_items(11);
  Items items(11);
  reference().lead(expected.tensor(), {0.1F, 1}, DType::kBFloat16, 100, 3, 8,
                   expected_items.taken());
  table().lead(actual.tensor(), {0.1F, 1}, DType::kBFloat16, 100, 3, 8, items.taken());
  actual.expect_same(expected);
  items.expect_same(expected_items);
}

TEST_P(Tables, TakeAndFollow) {
  for (const double share : {0.01, 0.3, 1.0}) {
    for_each_problem(kSizes, [&](const Problem& problem, Filter filter, std::uint32_t seed) {
      const std::int64_t length = problem.memory.size();
      const std::int64_t begin = std::min<std::int64_t>(seed % 40, length);
      const std::int64_t end = std::max<std::int64_t>(begin, length - seed % 21);
      const auto positions = some_positions(begin, end, share, seed);
      const auto count = static_cast<std::int64_t>(positions.size());
      const DType values = kTypes[seed % 3];
      Items items(count);
      std::copy(positions.begin(), positions.end(), items.positions.data());

      Problem expected(problem);
      const bool finite = reference().accumulate(expected.tensor(), filter, begin, end);
      Problem actual(expected);
      Items expected_items(items);
      Items actual_items(items);
      reference().take(expected.tensor(), filter, values, count, expected_items.taken());
      table().take(actual.tensor(), filter, values, count, actual_items.taken());
      actual.expect_same(expected);
      actual_items.expect_same(expected_items);

      reference().zero_and_put(expected.tensor(), begin, end, 0, nullptr, nullptr);
      Problem followed(problem);
      Items followed_items(items);
      EXPECT_EQ(table().follow(followed.tensor(), filter, values, begin, end, count,
                               followed_items.taken()),
                finite);
      followed.expect_same(expected);
      followed_items.expect_same(expected_items);
    });
  }
}

TEST_P(Tables, Keys) {
  for_each_problem(kSizes, [&](Problem problem, Filter filter, std::uint32_t seed) {
    const std::int64_t length = problem.memory.size();
    const std::int64_t begin = std::min<std::int64_t>(seed % 9, length);
    reference().accumulate(problem.tensor(), filter, 0, length);
    Guarded<std::uint32_t> expected(length - begin, seed % 5);
    Guarded<std::uint32_t> actual(expected);
    reference().keys(problem.tensor(), filter, begin, length, expected.data());
    table().keys(problem.tensor(), filter, begin, length, actual.data());
    EXPECT_TRUE(actual.same(expected));
  });
}

TEST_P(Tables, PutAndZeroAndPut) {
  for (const double share : {0.0, 0.01, 0.3, 1.0}) {
    for_each_problem(kSizes, [&](const Problem& problem, Filter, std::uint32_t seed) {
      const std::int64_t length = problem.memory.size();
      const std::int64_t begin = std::min<std::int64_t>(seed % 40, length);
      const std::int64_t end = std::max<std::int64_t>(begin, length - seed % 21);
      const auto positions = some_positions(begin, end, share, seed);
      const auto count = static_cast<std::int64_t>(positions.size());
      std::vector<float> values;
      std::mt19937 random(seed);
      for (std::int64_t i = 0; i < count; ++i)
        values.push_back(draw(Data::kSpecial, random, false));
      Problem expected(problem);
      Problem actual(problem);
      reference().zero_and_put(expected.tensor(), begin, end, count, positions.data(),
                               values.data());
      table().zero_and_put(actual.tensor(), begin, end, count, positions.data(), values.data());
      actual.expect_same(expected);

      // put: only what lies between the first and the last position is 0.
      Problem cleared(problem);
      if (count > 0) {
        reference().zero_and_put(cleared.tensor(), positions.front(), positions.back() + 1, 0,
                                 nullptr, nullptr);
      }
      Problem put_expected(cleared);
      reference().put(put_expected.tensor(), count, positions.data(), values.data());
      table().put(cleared.tensor(), count, positions.data(), values.data());
      cleared.expect_same(put_expected);
    });
  }
}

TEST_P(Tables, NeighbouringCallsShareALine) {
  for (const DType dtype : kTypes) {
    Problem expected(dtype, 1000, Data::kNormal, 3, 1);
    Problem actual(expected);
    const auto positions = some_positions(0, 1000, 0.2, 4);
    const auto count = static_cast<std::int64_t>(positions.size());
    const std::vector<float> values(positions.size(), 1.25F);
    reference().zero_and_put(expected.tensor(), 0, 1000, count, positions.data(), values.data());
    table().zero_and_put(actual.tensor(), 0, 1000, 0, nullptr, nullptr);
    for (std::int64_t i = 0; i < count; i += 7) {
      const std::int64_t n = std::min<std::int64_t>(7, count - i);
      table().put(actual.tensor(), n, positions.data() + i, values.data() + i);
    }
    actual.expect_same(expected);
  }
}

TEST_P(Tables, LoadAndStore) {
  for_each_problem(kSizes, [&](const Problem& problem, Filter, std::uint32_t seed) {
    const std::int64_t length = problem.memory.size();
    const float factor = seed % 2 == 0 ? 1.0F : 0.125F;
    Problem source(problem);
    Guarded<float> expected(length, seed % 7);
    Guarded<float> actual(expected);
    const bool finite =
        reference().load(source.tensor().grad, problem.dtype, length, factor, expected.data());
    EXPECT_EQ(table().load(source.tensor().grad, problem.dtype, length, factor, actual.data()),
              finite);
    EXPECT_TRUE(actual.same(expected));

    Problem stored(problem);
    Problem stored_expected(problem);
    reference().store(expected.data(), length, factor, stored_expected.tensor().grad,
                      problem.dtype);
    table().store(expected.data(), length, factor, stored.tensor().grad, problem.dtype);
    stored.expect_same(stored_expected);
  });
}

TEST_P(Tables, LoadAndStoreInPlace) {
  Guarded<float> expected(1009, 3);
  std::mt19937 random(8);
  for (std::int64_t i = 0; i < 1009; ++i) expected[i] = draw(Data::kSpecial, random, false);
  Guarded<float> actual(expected);
  reference().load(expected.data(), DType::kFloat32, 1009, 0.3F, expected.data());
  table().load(actual.data(), DType::kFloat32, 1009, 0.3F, actual.data());
  EXPECT_TRUE(actual.same(expected));
  reference().store(expected.data(), 1009, 7.0F, expected.data(), DType::kFloat32);
  table().store(actual.data(), 1009, 7.0F, actual.data(), DType::kFloat32);
  EXPECT_TRUE(actual.same(expected));
}

// The whole of a step, over a few million elements once.
TEST_P(Tables, ALargeTensor) {
  const std::int64_t length = 2500003;
  const std::int64_t chunk = 100;
  const std::int64_t chunks = chunks_of(length, chunk);
  const Filter filter{0.1F, 1};
  Problem expected(DType::kFloat32, length, Data::kSpecial, 11, 5, 2);
  Problem actual(expected);
  Problem one_pass(expected);
  Items expected_items(chunks);
  Items items(chunks);
  EXPECT_FALSE(reference().lead(expected.tensor(), filter, DType::kFloat32, chunk, 0, chunks,
                                expected_items.taken()));
  EXPECT_FALSE(
      table().lead(actual.tensor(), filter, DType::kFloat32, chunk, 0, chunks, items.taken()));
  actual.expect_same(expected);
  items.expect_same(expected_items);

  // A rank that is given the leader's positions ends where the leader does, in either way.
  Items one_pass_items(chunks);
  std::copy_n(items.positions.data(), chunks, one_pass_items.positions.data());
  Items two_pass_items(one_pass_items);
  Problem two_passes(one_pass);
  EXPECT_FALSE(table().follow(one_pass.tensor(), filter, DType::kFloat32, 0, length, chunks,
                              one_pass_items.taken()));
  EXPECT_FALSE(table().accumulate(two_passes.tensor(), filter, 0, length));
  table().take(two_passes.tensor(), filter, DType::kFloat32, chunks, two_pass_items.taken());
  one_pass.expect_same(expected);
  one_pass_items.expect_same(expected_items);
  two_pass_items.expect_same(expected_items);

  reference().put(expected.tensor(), chunks, items.positions.data(), items.values.data());
  table().put(actual.tensor(), chunks, items.positions.data(), items.values.data());
  table().zero_and_put(two_passes.tensor(), 0, length, chunks, items.positions.data(),
                       items.values.data());
  actual.expect_same(expected);
  two_passes.expect_same(expected);
}

std::vector<const Table*> all_tables() {
  return {tables().begin(), tables().end()};
}

INSTANTIATE_TEST_SUITE_P(Isa, Tables, ::testing::ValuesIn(all_tables()),
                         [](const auto& test) { return std::string(test.param->isa); });

}  // namespace
}  // namespace scalecom::kernels::testing
