// Thousands of steps and buckets leave nothing behind, and a slow rank breaks nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "scalecom/core/text.h"
#include "tests/holdings.h"
#include "tests/methods/ranks.h"

namespace scalecom::methods {
namespace {

using ::scalecom::testing::Holdings;
using ::scalecom::testing::holdings;
using testing::Gradients;

constexpr int kLearners = 64;
constexpr std::int64_t kBuckets = 2000;
// After these, or half of the steps where they are few, nothing may grow any more.
constexpr std::int64_t kSettling = 100;
constexpr double kGrowth = 1.01;

/// Steps of 64 learners; the other tests take a tenth of them. SCALECOM_SOAK_STEPS is for long
/// ones.
std::int64_t steps() {
  const char* const wanted = std::getenv("SCALECOM_SOAK_STEPS");
  return wanted != nullptr ? std::atoll(wanted) : 300;
}

std::int64_t settling(std::int64_t steps) {
  return std::min(kSettling, steps / 2);
}

void expect_no_more(const Holdings& now, const Holdings& before, double growth = kGrowth) {
  EXPECT_LE(now.threads, before.threads);
  EXPECT_LE(now.files, before.files);
  if (!::scalecom::testing::resident_memory_counts()) return;
  EXPECT_LT(static_cast<double>(now.resident_bytes),
            growth * static_cast<double>(before.resident_bytes));
}

/// What the process holds once ranks have settled, and at their end; rank 0 looks while all wait.
struct Watch {
  Holdings settled;
  Holdings last;

  void look(std::int64_t step, std::int64_t steps, comm::Communicator& communicator) {
    if (step != settling(steps) && step != steps - 1) return;
    communicator.barrier();
    if (communicator.rank() == 0) (step == steps - 1 ? last : settled) = holdings();
    communicator.barrier();
  }
};

/// A model's gradients, in two buckets, which are others in each of a few steps.
class Source {
 public:
  explicit Source(int rank) {
    std::mt19937 random(static_cast<unsigned>(rank));
    noise_ = testing::normal(1, elements() + kTurns, random).front();
  }

  static std::int64_t elements() { return buckets()[0].elements() + buckets()[1].elements(); }
  static const std::vector<layout::Layout>& buckets() {
    static const std::vector<layout::Layout> all{
        layout::Layout({{"fc2", 0, 8192, 64, {64, 128}}, {"fc2.bias", 8192, 128}}),
        layout::Layout({{"fc1", 0, 16384, 64, {128, 128}}, {"fc1.bias", 16384, 128}})};
    return all;
  }

  void fill(std::int64_t step, std::vector<float>& gradient) const {
    std::copy_n(noise_.begin() + step % kTurns, gradient.size(), gradient.begin());
  }

 private:
  static constexpr std::int64_t kTurns = 7;
  std::vector<float> noise_;
};

void train(const std::string& spec, int learners, std::int64_t steps, Watch& watch) {
  comm::inproc::run(learners, [&](comm::Communicator& communicator) {
    const auto method = make(spec);
    const Source source(communicator.rank());
    std::vector<float> gradient(static_cast<std::size_t>(Source::elements()));
    for (std::int64_t step = 0; step < steps; ++step) {
      source.fill(step, gradient);
      float* at = gradient.data();
      for (const layout::Layout& bucket : Source::buckets()) {
        method->reduce(core::Buffer::of(at, bucket.elements()), bucket, communicator);
        at += bucket.elements();
      }
      watch.look(step, steps, communicator);
    }
  });
}

void expect_flat(const std::string& spec, int learners, std::int64_t steps,
                 double growth = kGrowth) {
  Watch watch;
  train(spec, learners, 2, watch);  // what is made once for all
  const Holdings before = holdings();
  train(spec, learners, steps, watch);
  expect_no_more(watch.last, watch.settled, growth);
  const Holdings after = holdings();
  EXPECT_LE(after.threads, before.threads);
  EXPECT_LE(after.files, before.files);
}

TEST(SoakTest, SixtyFourLearnersHoldNoMoreAfterThousandsOfSteps) {
  expect_flat("scalecom,rate=64,beta=0.1", kLearners, steps());
}

TEST(SoakTest, SoDoThoseOfOtherMethods) {
  const std::int64_t many = std::max<std::int64_t>(160, steps() / 10);
  for (const char* spec : {"dense", "half,values=bf16", "scalecom,rate=64,leaders=sharded,groups=8",
                           "weighted,rate=64", "topk,rate=64", "gtopk,rate=64", "powersgd,rank=2",
                           "sketched_sgd,rate=64"}) {
    SCOPED_TRACE(spec);
    expect_flat(spec, 16, many);
  }
  // Their arrays grow to the largest message that there was, which comes late.
  for (const char* spec : {"dgc,rate=64", "adacomp"}) {
    SCOPED_TRACE(spec);
    expect_flat(spec, 16, many, 1.1);
  }
}

layout::Layout one_tensor(std::int64_t number) {
  return layout::Layout({{core::concat("tensor", number), 0, 500, 25}});
}

TEST(SoakTest, ThousandsOfBucketsInFlightGiveTheBitsOfOneAfterAnother) {
  constexpr int kRanks = 4;
  const std::int64_t steps = std::max<std::int64_t>(6, methods::steps() / 50);
  std::vector<layout::Layout> buckets;
  for (std::int64_t i = 0; i < kBuckets; ++i) buckets.push_back(one_tensor(i));
  const Holdings before = holdings();
  Watch watch;
  comm::inproc::run(kRanks, [&](comm::Communicator& communicator) {
    const auto method = make("scalecom,rate=25,beta=0.1");
    const auto judge = make("scalecom,rate=25,beta=0.1");
    const core::Stream worker = core::Stream::worker();
    std::mt19937 random(static_cast<unsigned>(communicator.rank()));
    const std::vector<float> first = testing::normal(1, kBuckets * 500, random).front();
    std::vector<float> gradient(first.size());
    std::vector<float> expected(first.size());
    std::vector<core::Work> under_way;
    under_way.reserve(static_cast<std::size_t>(kBuckets));
    for (std::int64_t step = 0; step < steps; ++step) {
      gradient = first;
      for (std::int64_t i = 0; i < kBuckets; ++i) {
        under_way.push_back(method->start(core::Buffer::of(gradient.data() + 500 * i, 500),
                                          buckets[static_cast<std::size_t>(i)], communicator,
                                          worker));
      }
      for (core::Work& work : under_way) work.wait();
      under_way.clear();
      watch.look(step, steps, communicator);
      if (step >= 2) continue;
      expected = first;
      for (std::int64_t i = 0; i < kBuckets; ++i) {
        judge->reduce(core::Buffer::of(expected.data() + 500 * i, 500),
                      buckets[static_cast<std::size_t>(i)], communicator);
      }
      EXPECT_TRUE(testing::same_bits(gradient, expected)) << "step " << step;
    }
  });
  expect_no_more(watch.last, watch.settled);
  EXPECT_LE(holdings().threads, before.threads);
  EXPECT_LE(holdings().files, before.files);
}

// The others wait, within their deadline, and what comes out is the same.
TEST(SoakTest, ARankTenTimesSlowerSlowsTheRunAndBreaksNothing) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  constexpr int kRanks = 4;
  constexpr int kSteps = 60;
  constexpr milliseconds kCompute{1};
  const auto run = [&](int slow, Gradients& result) {
    result.assign(kRanks, {});
    const auto begin = Clock::now();
    comm::inproc::run(
        kRanks,
        [&](comm::Communicator& communicator) {
          const auto method = make("scalecom,rate=64,beta=0.1,check=conserve");
          const Source source(communicator.rank());
          std::vector<float> gradient(static_cast<std::size_t>(Source::elements()));
          for (std::int64_t step = 0; step < kSteps; ++step) {
            std::this_thread::sleep_for(communicator.rank() == slow ? 10 * kCompute : kCompute);
            source.fill(step, gradient);
            float* at = gradient.data();
            for (const layout::Layout& bucket : Source::buckets()) {
              method->reduce(core::Buffer::of(at, bucket.elements()), bucket, communicator);
              at += bucket.elements();
            }
          }
          result[static_cast<std::size_t>(communicator.rank())] = gradient;
        },
        std::chrono::seconds(5));
    return Clock::now() - begin;
  };
  Gradients even;
  Gradients uneven;
  run(-1, even);
  for (const int slow : {0, kRanks - 1}) {
    EXPECT_GE(run(slow, uneven), kSteps * 10 * kCompute);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(testing::same_bits(uneven[rank], even[rank])) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace scalecom::methods
