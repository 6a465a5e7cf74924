#include <gtest/gtest.h>

#include <algorithm>

#include "scalecom/core/text.h"
#include "scalecom/methods/scalecom/scalecom.h"
#include "tests/methods/ranks.h"

// Bytes really moved and the calls that move them equal the formulas, and do not grow with the
// number of ranks. Here of methods whose ranks all send the same entries; the others' own tests
// hold theirs.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::World;

const char* const kSpecs[] = {
    "dense",
    "half,values=bf16",
    "scalecom",
    "scalecom,values=bf16",
    "scalecom,select=chunk:70",
    "scalecom,select=exact",
    "scalecom,select=random",
    "scalecom,leaders=sharded",
    "scalecom,leaders=sharded,values=fp16",
    "scalecom,check=conserve",
    "scalecom,warmup=100",
    "weighted",
    "weighted,leaders=sharded,values=bf16",
};

layout::Layout small_layout() {
  return layout_of({{700, 10}, {31, 1}, {333, 25}});
}

std::string text(const comm::Traffic& traffic) {
  return core::concat(traffic.sent, " bytes sent, ", traffic.received, " received, ", traffic.calls,
                      " calls");
}

void expect_formula(int size, const std::string& spec, const layout::Layout& layout) {
  World world(size, spec);
  std::vector<comm::Counters> before(static_cast<std::size_t>(size));
  for (std::int64_t step = 0; step < 4; ++step) {
    Gradients gradients(static_cast<std::size_t>(size),
                        std::vector<float>(static_cast<std::size_t>(layout.elements()), 0.5F));
    for (int r = 0; r < size; ++r) before[static_cast<std::size_t>(r)] = world.end(r).counters();
    world.reduce(gradients, layout);
    if (step == 0) continue;  // in which the ranks also agree on what they do
    for (int r = 0; r < size; ++r) {
      const comm::Counters moved = world.end(r).counters() - before[static_cast<std::size_t>(r)];
      const comm::Counters formula = world.method(r).cost(layout, size, r, step);
      for (int call = 0; call < comm::kCalls; ++call) {
        const auto kind = static_cast<comm::Call>(call);
        ASSERT_EQ(text(moved[kind]), text(formula[kind]))
            << spec << ", rank " << r << " of " << size << ", " << comm::to_string(kind);
      }
    }
  }
}

TEST(Traffic, CountersEqualTheFormulasWhereRanksSendTheSameEntries) {
  const layout::Layout layout = small_layout();
  for (const int size : {1, 2, 3, 4, 5, 7, 8, 13, 16, 32}) {
    for (const char* spec : kSpecs) expect_formula(size, spec, layout);
  }
}

TEST(Traffic, CountersEqualTheFormulasForEveryWorldUpTo128) {
  const layout::Layout layout = small_layout();
  for (int size = 1; size <= 128; ++size) expect_formula(size, "scalecom", layout);
  for (const char* spec : kSpecs) expect_formula(128, spec, layout);
}

// The busiest rank's bytes over 2(n-1)/n, from 2 to 128 ranks.
TEST(Traffic, IsConstantInTheNumberOfRanks) {
  const layout::Layout layout = layout_of({{2560000, 100}});
  const auto method = make("scalecom");
  double least = 0;
  double most = 0;
  for (int size = 2; size <= 128; ++size) {
    std::int64_t busiest = 0;
    for (int r = 0; r < size; ++r) {
      const comm::Traffic total = method->cost(layout, size, r, 5).total();
      busiest = std::max(busiest, total.sent + total.received);
    }
    const double scaled = static_cast<double>(busiest) / (2.0 * (size - 1) / size);
    least = least == 0 ? scaled : std::min(least, scaled);
    most = std::max(most, scaled);
  }
  // Shares of whole elements differ by one element; nothing else may.
  EXPECT_LT(most / least, 1.005);
}

// 100X is 100X of the values; offsets and dense slices are counted beside them.
TEST(Traffic, AtRate100IsAboutANinetiethOfDense) {
  const layout::Layout layout = layout_of({{25600000, 100}});
  const auto sent = [&](const std::string& spec) {
    const auto method = make(spec);
    double total = 0;
    for (int r = 0; r < 4; ++r)
      total += static_cast<double>(method->cost(layout, 4, r, 0).total().sent);
    return total / 4;
  };
  // A value is 4 bytes and is all-reduced; its offset is 7 bits and is broadcast.
  const double expected = 2 * 0.75 * 256000 * 4 + 0.75 * 256000 * 7 / 8;
  EXPECT_NEAR(sent("scalecom"), expected, 100);
  EXPECT_NEAR(sent("dense") / sent("scalecom"), 90.1, 0.1);
}

}  // namespace
}  // namespace scalecom::methods
