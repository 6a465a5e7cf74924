#include "scalecom/plan/outlook.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/layout/rates.h"
#include "scalecom/plan/buckets.h"

namespace scalecom::plan {
namespace {

constexpr const char* kScaleCom = "scalecom,rate=100,beta=0.1";

Setting setting(int workers, double bandwidth) {
  Setting setting{built_in_model("resnet50"), {}, stored_kernels_of("h200")};
  setting.network.workers = workers;
  setting.network.between = {bandwidth, 0};
  setting.batch = 8;
  setting.flops = 100e12;
  return setting;
}

Outcome outcome_of(const Setting& setting, const std::string& method) {
  return look_ahead(setting, {method}).front();
}

// Bytes are those of the method's own formula, of the whole model in one bucket.
TEST(Outlook, MovesWhatTheMethodSaysItDoes) {
  Setting one = setting(8, 1e9);
  one.bucket_bytes = 1e12;
  for (const std::string spec : {"dense", "half", kScaleCom, "topk,rate=100", "powersgd,rank=4"}) {
    const auto method = methods::make(spec);
    std::vector<layout::Tensor> tensors;
    for (const Bucket& bucket : cut_buckets(one.model, 1e12)) tensors = bucket.tensors;
    const layout::RatePlan rates(tensors_of(one.model, 8), method->rate_policy());
    const auto cost = method->cost(rates.bucket(tensors), 8, 0, 1'000'000'000);
    EXPECT_EQ(outcome_of(one, spec).moved.between.total().sent, cost.total().sent) << spec;
  }
}

// Of all ranks, by every call, whichever rank would lead.
TEST(Outlook, MovesWhatTheBusiestWorkerDoesAfterTheWarmUp) {
  for (const auto& [workers, per_node] : {std::pair(3, 1), {6, 1}, {7, 1}, {11, 1}, {12, 4}}) {
    Setting one = setting(workers, 1e9);
    one.network.per_node = per_node;
    one.network.inside = {1e9, 0};
    one.bucket_bytes = 1e12;
    for (const std::string spec : {"dense", "scalecom,warmup=9", "scalecom,leaders=sharded"}) {
      const auto method =
          methods::make(per_node > 1 ? core::concat(spec, ",groups=", per_node) : spec);
      const layout::RatePlan rates(tensors_of(one.model, 8), method->rate_policy());
      const auto layout = rates.bucket(cut_buckets(one.model, 1e12).front().tensors);
      const Outcome outcome = outcome_of(one, spec);
      for (int i = 0; i < comm::kCalls; ++i) {
        const auto call = static_cast<comm::Call>(i);
        comm::Traffic inside;
        comm::Traffic between;
        const auto take = [](comm::Traffic& most, const comm::Traffic& own) {
          most = {std::max(most.sent, own.sent), std::max(most.received, own.received),
                  std::max(most.calls, own.calls)};
        };
        for (int rank = 0; rank < workers; ++rank) {
          const auto levels = method->level_cost(layout, workers, rank, 1000LL * workers);
          take(inside, levels.inside[call]);
          take(between, levels.between[call]);
        }
        for (const auto& [planned, most] : {std::pair(outcome.moved.inside[call], inside),
                                            {outcome.moved.between[call], between}}) {
          // Offsets of shares that differ by an element can differ by a word.
          EXPECT_NEAR(planned.sent, most.sent, 4) << spec << ", " << workers;
          EXPECT_NEAR(planned.received, most.received, 4) << spec << ", " << workers;
          EXPECT_EQ(planned.calls, most.calls) << spec << ", " << workers;
        }
      }
    }
  }
}

Setting measured_setting() {
  Setting one = setting(4, 1e9);
  one.model = {"mine", "a row", {}, 16, 0.5};
  one.model.layers = {{"a", {{"a.w", {1000, 1000}}}, 0, 1, 2},
                      {"b", {{"b.w", {1000, 1000}}}, 0, 1, 20}};
  one.bucket_bytes = 1e6;
  one.flops = 0;
  return one;
}

TEST(Outlook, OfAMeasuredModelTheTimesAreItsOwn) {
  Setting one = measured_setting();
  one.batch = 16;
  EXPECT_DOUBLE_EQ(outcome_of(one, "dense").time.compute, 24.5);
  // What is outside of both passes does not know the batch.
  one.batch = 32;
  EXPECT_DOUBLE_EQ(outcome_of(one, "dense").time.compute, 48.5);
  one.step_seconds = 7;
  EXPECT_DOUBLE_EQ(outcome_of(one, "dense").time.compute, 7);
}

TEST(Outlook, TheLastLayerIsTheFirstToTravel) {
  Setting one = measured_setting();
  one.batch = 16;
  // Each bucket takes 6 s: the second is ready at 2 + 20 + 2, and waits for the first until 28.
  one.network.between.bandwidth = 1e6;
  EXPECT_NEAR(outcome_of(one, "dense").time.step, 2 + 20 + 6 + 6 + 0.5, 1e-3);
}

TEST(Outlook, ADeviationIsOfEveryWorkerAndNotOfNodes) {
  Setting one = setting(64, 1e9);
  one.deviation = 0.2;
  const double flat = outcome_of(one, "dense").time.compute;
  one.network.per_node = 8;
  one.network.inside = {300e9, 0};
  EXPECT_EQ(outcome_of(one, "dense").time.compute, flat);
}

TEST(Outlook, InGroupsEachWorkerCompressesItsShare) {
  Setting one = measured_setting();
  one.kernels = {"a device", "a test", {{"scalecom", 1e6, 8}}};
  EXPECT_DOUBLE_EQ(outcome_of(one, kScaleCom).time.compress, 2 * 8);
  one.network.per_node = 4;
  one.network.inside = {300e9, 0};
  EXPECT_DOUBLE_EQ(outcome_of(one, kScaleCom).time.compress, 2 * 2);
  EXPECT_DOUBLE_EQ(outcome_of(one, "scalecom,groups=1").time.compress, 2 * 8);
}

TEST(Outlook, TheBatchDecidesTheRatesThatGoByFlops) {
  const auto sent = [](std::int64_t batch) {
    Setting one = setting(8, 1e9);
    one.batch = batch;
    return outcome_of(one, "scalecom,rates=paper").moved.between.total().sent;
  };
  EXPECT_GT(sent(256), sent(1));
}

TEST(Outlook, WithoutOverlapADenseStepIsComputingAndTheRing) {
  Setting one = setting(128, 32e9);
  one.overlaps = false;
  const Outcome dense = outcome_of(one, "dense");
  const double compute = 3 * one.model.forward_flops() * 8 / 100e12;
  const double comm = 2.0 * 127 / 128 * 4 * 25'557'032 / 32e9;
  EXPECT_NEAR(dense.time.compute, compute, 1e-9);
  EXPECT_NEAR(dense.time.comm / comm, 1, 1e-4);
  EXPECT_NEAR(dense.time.step, compute + dense.time.comm, 1e-12);
  EXPECT_EQ(dense.speedup, 1);
}

TEST(Outlook, OverlapHelpsDenseMost) {
  Setting one = setting(128, 32e9);
  const double overlapped = outcome_of(one, kScaleCom).speedup;
  one.overlaps = false;
  EXPECT_GT(outcome_of(one, kScaleCom).speedup, overlapped);
}

TEST(Outlook, TrafficOfScaleComDoesNotGrowAndTopKsDoes) {
  const auto comm = [](int workers, const std::string& method) {
    return outcome_of(setting(workers, 1e9), method).time.comm;
  };
  EXPECT_LT(comm(1024, kScaleCom) / comm(8, kScaleCom), 1.2);
  EXPECT_GT(comm(1024, "topk,rate=100") / comm(8, "topk,rate=100"), 50);
}

TEST(Outlook, AtTheBandwidthWhereItPaysBothTakeTheSame) {
  Setting one = setting(16, 1e9);
  const Outcome scalecom = outcome_of(one, kScaleCom);
  ASSERT_GT(scalecom.pays_below, 1e9);
  ASSERT_TRUE(std::isfinite(scalecom.pays_below));
  one.network.between.bandwidth = scalecom.pays_below;
  EXPECT_NEAR(outcome_of(one, kScaleCom).speedup, 1, 1e-3);
  one.network.between.bandwidth = scalecom.pays_below * 1.5;
  EXPECT_LT(outcome_of(one, kScaleCom).speedup, 1);
}

TEST(Outlook, PaysFromNothingToAnyBandwidth) {
  // A method that takes longer to compress pays over slower wires alone.
  for (const double seconds : {1e-6, 1e-2, 1e2, 1e5}) {
    Setting one = setting(16, 1e9);
    one.overlaps = false;
    one.kernels = {"a device", "a test", {{"scalecom", 25.6e6, seconds}}};
    const double below = outcome_of(one, kScaleCom).pays_below;
    ASSERT_TRUE(below > 0 && std::isfinite(below)) << seconds;
    one.network.between.bandwidth = below;
    EXPECT_NEAR(outcome_of(one, kScaleCom).speedup, 1, 1e-6) << seconds;
  }
  // Free of charge, and with as many hops as dense, it always does.
  EXPECT_TRUE(std::isinf(outcome_of(setting(16, 1e9), "gtopk,rate=100").pays_below));
  EXPECT_EQ(outcome_of(setting(1024, 1e9), "topk,rate=100").pays_below, 0);
  EXPECT_EQ(outcome_of(setting(1024, 1e9), "dense").pays_below, 0);
}

TEST(Outlook, GroupsSendLessBetweenNodes) {
  Setting one = setting(64, 1e9);
  one.network.per_node = 8;
  one.network.inside = {300e9, 0};
  const auto sent = [&](const std::string& method) {
    return static_cast<double>(outcome_of(one, method).moved.between.total().sent);
  };
  EXPECT_NEAR(sent("scalecom,rate=100,groups=1") / sent("scalecom,rate=100"), 8, 1);
  EXPECT_GT(outcome_of(one, "dense").moved.inside.total().sent, 0);
  EXPECT_EQ(outcome_of(one, "topk,rate=100").moved.inside.total().sent, 0);
  EXPECT_THROW(outcome_of(one, "scalecom,groups=4"), core::UsageError);
  EXPECT_THROW(outcome_of(one, "topk,groups=8"), core::UsageError);
  EXPECT_THROW(outcome_of(one, "topk,groups=1"), core::UsageError);
  EXPECT_EQ(sent("scalecom,rate=100,groups=node"), sent("scalecom,rate=100"));
  // What cannot be divided works over all.
  EXPECT_EQ(outcome_of(one, "scalecom,select=exact").moved.inside.total().sent, 0);
  one.network.workers = 60;
  EXPECT_THROW(outcome_of(one, "dense"), core::UsageError);
}

// Of a method without groups, what goes to members of the same node does not leave it.
TEST(Outlook, TheEffectiveRateIsOfWhatLeavesANode) {
  Setting one = setting(64, 1e9);
  one.network.per_node = 8;
  one.network.inside = {300e9, 0};
  const Outcome topk = outcome_of(one, "topk,rate=100");
  const auto sent = static_cast<double>(topk.moved.between.total().sent);
  EXPECT_DOUBLE_EQ(topk.sent_between, sent * 56 / 63);
  EXPECT_NEAR(topk.effective_rate, outcome_of(one, "dense").sent_between / (sent * 56 / 63), 1e-12);
  EXPECT_EQ(outcome_of(one, "dense").effective_rate, 1);
  EXPECT_NEAR(outcome_of(one, "half").effective_rate, 2, 1e-3);
  one.network.algorithm = Algorithm::kRing;
  EXPECT_DOUBLE_EQ(outcome_of(one, "topk,rate=100").sent_between, sent / 8);
  one.network.per_node = 64;
  EXPECT_EQ(outcome_of(one, "topk,rate=100").sent_between, 0);
  EXPECT_EQ(outcome_of(one, "topk,rate=100").effective_rate, 1);
  one.network.per_node = 1;
  EXPECT_EQ(outcome_of(one, "topk,rate=100").sent_between, sent);
}

TEST(Outlook, AMeasuredStepAndStragglersScaleComputing) {
  Setting one = setting(64, 1e9);
  one.step_seconds = 0.03;
  EXPECT_NEAR(outcome_of(one, "dense").time.compute, 0.03, 1e-12);
  one.deviation = 0.1;
  EXPECT_GT(outcome_of(one, "dense").time.compute, 0.036);
}

TEST(Outlook, KernelsThatWereNotMeasuredAreSaidToBe) {
  const Outcome outcome = outcome_of(setting(8, 1e9), "gtopk,rate=100");
  EXPECT_FALSE(outcome.measured);
  EXPECT_NE(outcome.note.find("not measured on an NVIDIA H200"), std::string::npos);
  EXPECT_TRUE(outcome_of(setting(8, 1e9), kScaleCom).note.empty());
  Setting one = setting(8, 1e9);
  one.kernels = stored_kernels_of("epyc");
  const Outcome least = outcome_of(one, "adacomp");
  EXPECT_TRUE(least.measured);
  EXPECT_EQ(least.note, "what it sends depends on the gradient: this is the least");
}

TEST(Outlook, ALargeFirstLayerThatTravelsDenseIsHintedAt) {
  Setting one = setting(64, 1e9);
  EXPECT_EQ(outcome_of(one, kScaleCom).hint, "") << "9,408 of 25.6 million parameters";
  one.model = built_in_model("gpt2");
  EXPECT_NE(outcome_of(one, kScaleCom).hint.find("31 % of the parameters"), std::string::npos)
      << outcome_of(one, kScaleCom).hint;
  EXPECT_NE(advise(look_ahead(one, {"dense", kScaleCom})).find("Use scalecom"), std::string::npos);
  for (const std::string none :
       {"dense", "half", "scalecom,first=compressed", "powersgd,rank=4", "topk,rate=10"}) {
    EXPECT_EQ(outcome_of(one, none).hint, "") << none;
  }
  // What a pattern has dense, first=compressed would not change.
  for (const std::string named :
       {"scalecom,rates=wte*:dense", "scalecom,rates=wte*:25;h.*:dense"}) {
    EXPECT_EQ(outcome_of(one, named).hint, "") << named;
  }
  one.network.workers = 1;
  EXPECT_EQ(outcome_of(one, kScaleCom).hint, "");
}

TEST(Outlook, OneWorkerAndOneNodeWork) {
  EXPECT_EQ(outcome_of(setting(1, 1e9), "dense").time.comm, 0);
  EXPECT_EQ(outcome_of(setting(1, 1e9), kScaleCom).effective_rate, 1);
  Setting one = setting(8, 1e9);
  one.network.per_node = 8;
  one.network.inside = {300e9, 0};
  EXPECT_GT(outcome_of(one, kScaleCom).time.comm, 0);
  EXPECT_EQ(outcome_of(one, kScaleCom).moved.between.total().sent, 0);
}

TEST(Outlook, SettingsThatCannotBe) {
  const auto refused = [](auto change) {
    Setting one = setting(8, 1e9);
    change(one);
    EXPECT_THROW(look_ahead(one, {"dense"}), core::UsageError);
  };
  refused([](Setting& one) { one.network.workers = 0; });
  refused([](Setting& one) { one.batch = 0; });
  refused([](Setting& one) { one.flops = 0; });
  refused([](Setting& one) { one.flops = -1; });
  refused([](Setting& one) { one.network.between.bandwidth = 0; });
  refused([](Setting& one) { one.network.between.latency = -1; });
  refused([](Setting& one) { one.step_seconds = -1; });
  refused([](Setting& one) { one.bucket_bytes = 0; });
  refused([](Setting& one) { one.deviation = -1; });
  refused([](Setting& one) { one.network.per_node = 2; });
  refused([](Setting& one) { one.network.per_node = 0; });
  refused([](Setting& one) { one.network.workers = (1 << 20) + 1; });
  refused([](Setting& one) { one.deviation = 10.5; });
  const double infinite = std::numeric_limits<double>::infinity();
  refused([&](Setting& one) { one.network.between.bandwidth = infinite; });
  refused([&](Setting& one) { one.network.between.latency = infinite; });
  refused([&](Setting& one) { one.step_seconds = infinite; });
  refused([](Setting& one) { one.network.between.timed = {{1, 0.1}, {1, 0.2}}; });
  refused([](Setting& one) { one.network.between.timed = {{1, 0.2}, {2, 0.1}}; });
  Setting most = setting(1 << 20, 1e9);
  most.deviation = 10;
  most.network.between.timed = {{1, 0.1}, {2, 0.1}};
  EXPECT_NO_THROW(look_ahead(most, {"dense"}));
  // Each figure alone can be.
  refused([](Setting& one) { one.network.between.bandwidth = 1e-301; });
  refused([](Setting& one) { one.network.between.latency = 1e308; });
  refused([](Setting& one) { one.flops = 1e-300; });
  EXPECT_THROW(look_ahead(setting(8, 1e9), {"nope"}), core::UsageError);
}

// Over a distance, where a hop costs more than the bytes.
TEST(Outlook, FewerHopsCanPayWhereMoreBytesTakeNoTime) {
  Setting one = setting(256, 100e9);
  one.bucket_bytes = 1e9;
  one.network.between.latency = 0.08;
  const auto outcomes = look_ahead(one, {"topk,rate=100"});
  EXPECT_GT(outcomes.front().speedup, 2);
  EXPECT_EQ(outcomes.front().pays_below, 0);
  const std::string advice = advise(outcomes);
  EXPECT_NE(advice.find("Use topk"), std::string::npos) << advice;
  EXPECT_NE(advice.find("does not pay at low bandwidths"), std::string::npos) << advice;
  one.network.between.bandwidth = 1e8;
  EXPECT_LT(outcome_of(one, "topk,rate=100").speedup, 1);
}

Outcome of(const std::string& method, double speedup, double pays_below) {
  Outcome outcome;
  outcome.method = method;
  outcome.time.step = 0.0123456;
  outcome.speedup = speedup;
  outcome.pays_below = pays_below;
  return outcome;
}

TEST(Advice, IsOneSentence) {
  EXPECT_EQ(advise({of("dense", 1, 0), of("a", 1.256, 2e9)}),
            "Use a: a step of 12.35 ms, 1.26 times as fast as dense; it pays below 2 GB/s "
            "(16 Gbit/s) between nodes.");
  EXPECT_EQ(advise({of("a", 2, std::numeric_limits<double>::infinity())}),
            "Use a: a step of 12.35 ms, 2 times as fast as dense; it pays at any bandwidth.");
  EXPECT_EQ(advise({of("dense", 1, 0)}),
            "Stay with dense: no method makes the step over 5 % shorter.");
}

// A later method gives up more, and has to be two hundredths better than the one before it.
TEST(Advice, OfMethodsThatAreAlikeTakesTheFirst) {
  const auto starts = [](const std::vector<Outcome>& outcomes, const std::string& words) {
    EXPECT_TRUE(advise(outcomes).starts_with(words)) << advise(outcomes);
  };
  starts({of("a", 1.9, 1e9), of("b", 1.93, 1e9)}, "Use a");
  starts({of("a", 1.9, 1e9), of("b", 1.95, 1e9)}, "Use b");
  starts({of("dense", 1, 0), of("a", 1.049, 1e9)}, "Stay with dense");
  starts({of("dense", 1, 0), of("a", 1.051, 1e9)}, "Use a");
  // The first is no reason to stay with dense.
  starts({of("dense", 1, 0), of("a", 1.045, 1e9), of("b", 1.06, 1e9)}, "Use b");
}

TEST(Advice, StayingSaysWhereCompressionBegins) {
  Outcome noted = of("c", 1, 9e9);
  noted.note = "its kernels were not measured";
  const double always = std::numeric_limits<double>::infinity();
  const std::string text =
      advise({of("dense", 1, 0), of("a", 1, 2e9), of("b", 1, 1e9), noted, of("d", 1, always)});
  EXPECT_NE(text.find("begins to pay below 2 GB/s (16 Gbit/s)."), std::string::npos) << text;
}

// Whose kernels are unknown, or whose bytes, is never recommended.
TEST(Advice, PassesOverWhatHasANote) {
  Outcome noted = of("a", 5, 9e9);
  noted.note = "its kernels were not measured";
  EXPECT_TRUE(advise({of("dense", 1, 0), noted}).starts_with("Stay with dense"));
  EXPECT_TRUE(advise({noted}).starts_with("No method here"));
}

TEST(Advice, FollowsTheSpeedup) {
  const std::vector<std::string> methods{"dense", "half", kScaleCom, "powersgd,rank=4"};
  const std::string slow = advise(look_ahead(setting(16, 125e6), methods));
  EXPECT_NE(slow.find(core::concat("Use ", kScaleCom)), std::string::npos) << slow;
  EXPECT_NE(slow.find("pays below"), std::string::npos) << slow;
  const std::string fast = advise(look_ahead(setting(16, 1e12), methods));
  EXPECT_NE(fast.find("Stay with dense"), std::string::npos) << fast;
}

}  // namespace
}  // namespace scalecom::plan
