// The selections against a stable sort of every |u|.
#include "scalecom/kernels/select.h"

#include <numeric>
#include <tuple>

#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/reference/reference.h"
#include "tests/kernels/fixture.h"

namespace scalecom::kernels::testing {
namespace {

constexpr Filter kFilter{0.2F, 1};

std::vector<float> magnitudes(Problem& problem) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < problem.memory.size(); ++i) {
    all.push_back(std::abs(std::fma(1.0F - kFilter.beta, problem.grad(i), problem.memory[i])));
  }
  return all;
}

// The offsets of the `keep` largest, ascending.
std::vector<std::uint32_t> largest(const std::vector<float>& all, std::int64_t keep) {
  std::vector<std::uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return all[a] > all[b]; });
  order.resize(static_cast<std::size_t>(keep));
  std::sort(order.begin(), order.end());
  return order;
}

Problem accumulated(DType dtype, std::int64_t length, Data data, std::uint32_t seed) {
  Problem problem(dtype, length, data, seed);
  reference::table().accumulate(problem.tensor(), kFilter, 0, length);
  return problem;
}

layout::Cut top_cut(std::int64_t length, std::int64_t chunk, double rate) {
  return layout::cut({"t", 0, length, rate}, {layout::Selection::Kind::kTop, chunk});
}

TEST(SelectTop, IsTheSortedTop) {
  std::uint32_t seed = 0;
  for (const DType dtype : kTypes) {
    for (const Data data : kAllData) {
      for (const auto& [length, chunk, rate] : {std::tuple{0, 10, 2.0},
                                                {1, 10, 2.0},
                                                {1009, 64, 4.0},
                                                {5003, 400, 100.0},
                                                {5003, 1000, 7.3},
                                                {3000, 100, 100.0},
                                                {2000, 5000, 50.0},
                                                {4096, 2048, 1.1}}) {
        Problem problem = accumulated(dtype, length, data, ++seed);
        const auto all = magnitudes(problem);
        const layout::Cut cut = top_cut(length, chunk, rate);
        std::vector<std::uint32_t> positions(static_cast<std::size_t>(cut.kept()));
        const std::int64_t middle = cut.chunks() / 2;
        select_top(problem.tensor(), kFilter, cut, middle, cut.chunks(), positions.data());
        select_top(problem.tensor(), kFilter, cut, 0, middle, positions.data());
        std::vector<std::uint32_t> expected;
        for (std::int64_t c = 0; c < cut.chunks(); ++c) {
          const std::int64_t begin = c * chunk;
          const std::int64_t end = std::min<std::int64_t>(begin + chunk, length);
          const std::vector<float> part(all.begin() + begin, all.begin() + end);
          const std::int64_t keep = end - begin == chunk ? cut.keep : cut.keep_tail;
          for (const auto at : largest(part, keep)) {
            expected.push_back(at + static_cast<std::uint32_t>(begin));
          }
        }
        ASSERT_EQ(positions, expected) << length << ' ' << chunk << ' ' << static_cast<int>(data);
      }
    }
  }
}

// Selects over a bucket and compares with one sort over all of it.
void check_exact(const std::vector<std::int64_t>& lengths, DType dtype, Data data,
                 std::int64_t keep, std::uint32_t seed) {
  std::vector<Problem> problems;
  std::vector<float> all;
  for (const std::int64_t length : lengths) {
    problems.push_back(accumulated(dtype, length, data, ++seed));
    const auto part = magnitudes(problems.back());
    all.insert(all.end(), part.begin(), part.end());
  }
  std::vector<Tensor> tensors;
  for (Problem& problem : problems) tensors.push_back(problem.tensor());
  std::vector<std::uint32_t> positions(static_cast<std::size_t>(keep) + 1, 77);
  std::vector<std::int64_t> counts(lengths.size());
  select_exact(tensors, kFilter, keep, positions.data(), counts.data());

  std::vector<std::uint32_t> expected;
  std::vector<std::int64_t> expected_counts(lengths.size());
  const auto kept = largest(all, keep);
  std::size_t next = 0;
  std::int64_t base = 0;
  for (std::size_t t = 0; t < lengths.size(); ++t) {
    for (; next < kept.size() && kept[next] < base + lengths[t]; ++next, ++expected_counts[t]) {
      expected.push_back(kept[next] - static_cast<std::uint32_t>(base));
    }
    base += lengths[t];
  }
  expected.push_back(77);
  ASSERT_EQ(counts, expected_counts);
  ASSERT_EQ(positions, expected);
}

TEST(SelectExact, IsTheSortedTop) {
  std::uint32_t seed = 100;
  for (const DType dtype : kTypes) {
    for (const Data data : kAllData) {
      for (const std::int64_t keep : {0, 1, 7, 600, 3104, 3105}) {
        check_exact({1000, 0, 1, 2000, 104}, dtype, data, keep, seed += 10);
      }
    }
  }
}

TEST(SelectExact, OfManyBlocks) {
  core::set_pool_threads(3);
  check_exact({400000, 3, 150001}, DType::kFloat32, Data::kNormal, 5500, 1);
  check_exact({400000, 3, 150001}, DType::kFloat32, Data::kTies, 123456, 2);
  check_exact({400000, 3, 150001}, DType::kBFloat16, Data::kZero, 410000, 3);
}

TEST(SelectExact, OfNothing) {
  std::int64_t count = 5;
  select_exact({}, kFilter, 0, nullptr, &count);
  EXPECT_EQ(count, 5);
}

layout::Cut random_cut(std::int64_t length, double rate) {
  return layout::cut({"t", 0, length, rate}, {layout::Selection::Kind::kRandom, 0});
}

TEST(SelectRandom, StaysInItsChunkWhateverTheDivision) {
  const layout::Cut cut = random_cut(10037, 100);
  std::vector<std::uint32_t> whole(static_cast<std::size_t>(cut.chunks()));
  select_random(42, 0, cut, 0, cut.chunks(), whole.data());
  for (std::int64_t c = 0; c < cut.chunks(); ++c) {
    const std::int64_t position = whole[static_cast<std::size_t>(c)];
    EXPECT_GE(position, c * 100);
    EXPECT_LT(position, std::min<std::int64_t>(c * 100 + 100, 10037));
  }
  std::vector<std::uint32_t> parts(whole.size());
  for (std::int64_t c = 0; c < cut.chunks(); ++c) select_random(42, 0, cut, c, c + 1, parts.data());
  EXPECT_EQ(parts, whole);
  std::vector<std::uint32_t> other(whole.size());
  select_random(43, 0, cut, 0, cut.chunks(), other.data());
  EXPECT_NE(other, whole);
  // The chunks from 60 on as a tensor of their own.
  const layout::Cut rest = random_cut(10037 - 6000, 100);
  std::vector<std::uint32_t> drawn(static_cast<std::size_t>(rest.chunks()));
  select_random(42, 60, rest, 0, rest.chunks(), drawn.data());
  for (std::size_t c = 0; c < drawn.size(); ++c) EXPECT_EQ(drawn[c] + 6000, whole[60 + c]);
}

TEST(SelectRandom, IsTheSameOnEveryMachine) {
  const layout::Cut cut = random_cut(1000, 100);
  std::vector<std::uint32_t> positions(10);
  select_random(7, 0, cut, 0, 10, positions.data());
  const std::vector<std::uint32_t> fixed = {39, 146, 210, 390, 426, 555, 616, 722, 880, 952};
  EXPECT_EQ(positions, fixed);
}

TEST(SelectRandom, IsEven) {
  const std::int64_t chunks = 200000;
  const layout::Cut cut = random_cut(chunks * 10, 10);
  std::vector<std::uint32_t> positions(static_cast<std::size_t>(chunks));
  select_random(1, 0, cut, 0, chunks, positions.data());
  std::vector<double> counts(10);
  for (const std::uint32_t position : positions) ++counts[position % 10];
  // Nine degrees of freedom: a chi-square over 40 comes once in 100,000.
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - 20000) * (count - 20000) / 20000;
  EXPECT_LT(chi_square, 40);
}

}  // namespace
}  // namespace scalecom::kernels::testing
