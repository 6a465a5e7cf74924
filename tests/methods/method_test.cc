#include "scalecom/methods/method.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "tests/core/odd_arithmetic.h"
#include "tests/device.h"
#include "tests/methods/ranks.h"

namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::World;

std::string refusal(const std::string& spec) {
  try {
    make(spec);
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Registry, KnowsItsMethods) {
  EXPECT_EQ(names(),
            (std::vector<std::string>{"dense", "half", "scalecom", "weighted", "topk", "gtopk",
                                      "dgc", "adacomp", "powersgd", "sketched_sgd"}));
  for (const std::string& name : names()) EXPECT_FALSE(describe(name).empty());
}

TEST(Registry, ASpecMakesTheSameMethodAgain) {
  for (const std::string spec :
       {"dense", "half,values=bf16", "scalecom", "scalecom,rate=92.5,beta=0.3,select=chunk:1000",
        "scalecom,rates=fc*:400;embed:dense,first=compressed,leaders=sharded",
        "scalecom,select=random,seed=7,values=bf16,warmup=12,decay=0.99,nonfinite=error,"
        "check=conserve,rates=paper"}) {
    const std::string full = make(spec)->spec();
    EXPECT_EQ(make(full)->spec(), full);
  }
  EXPECT_EQ(make("scalecom,rate=92.5")->rate_policy().rate, 92.5);
}

TEST(Registry, RefusalsSayWhatIsAllowed) {
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(contains(refusal("scalecon"), "dense, half, scalecom, weighted, topk, gtopk, dgc"))
      << refusal("scalecon");
  EXPECT_TRUE(contains(refusal("scalecom,speed=9"), "rate=<a number in [1, "))
      << refusal("scalecom,speed=9");
  EXPECT_TRUE(contains(refusal("scalecom,rate=0"), "rate=<a number in [1, "));
  EXPECT_TRUE(contains(refusal("scalecom,beta=2"), "beta=<a number in (0, 1]>"));
  EXPECT_TRUE(contains(refusal("scalecom,select=best"), "chunk | chunk:C | exact | random"));
  EXPECT_TRUE(contains(refusal("scalecom,leaders=sharded,select=exact"), "chunk:C"));
  EXPECT_TRUE(contains(refusal("adacomp,rate=2"), "[adacomp] no option 'rate'; allowed: bin="));
  for (const std::string name : {"dense", "half", "scalecom", "weighted"}) {
    EXPECT_TRUE(contains(refusal(name + ",group=2"), "groups=<node | ranks of a group>")) << name;
  }
  for (const std::string bad : {"",
                                "scalecom,",
                                "scalecom,rate",
                                "scalecom,rate=1,rate=2",
                                "scalecom,rate=abc",
                                "scalecom,rate=nan",
                                "scalecom,rate=inf",
                                "scalecom,rate=1e10",
                                "scalecom,rate=0.5",
                                "scalecom,rate=100x",
                                "scalecom,beta=0",
                                "scalecom,beta=1e-300",
                                "scalecom,decay=1e-39",
                                "scalecom,beta=-1",
                                "scalecom,beta=1.01",
                                "scalecom,decay=0",
                                "scalecom,decay=1.5",
                                "scalecom,select=chunk:0",
                                "scalecom,select=chunk:-4",
                                "scalecom,select=chunk:",
                                "scalecom,select=chunk:9x",
                                "scalecom,select=chunk:2147483649",
                                "scalecom,leaders=sharded,select=random",
                                "scalecom,values=fp64",
                                "scalecom,warmup=-1",
                                "scalecom,warmup=1.5",
                                "scalecom,rates=fast",
                                "scalecom,rates=fc*:0",
                                "scalecom,first=maybe",
                                "scalecom,nonfinite=ignore",
                                "scalecom,check=all",
                                "half,values=fp32",
                                "dense,x=1",
                                "sketched_sgd,momentum=1",
                                "sketched_sgd,momentum=0.99999999"}) {
    EXPECT_FALSE(refusal(bad).empty()) << bad;
  }
}

TEST(Method, AStepEndsWhenATensorComesAgain) {
  World world(1, "scalecom");
  const layout::Layout first({{"x", 0, 500, 10}});
  const layout::Layout second({{"y", 0, 300, 10}});
  const layout::Layout both({{"y", 0, 300, 10}, {"x", 300, 500, 10}});
  const auto bring = [&](const layout::Layout& layout) {
    Gradients gradients(1, std::vector<float>(static_cast<std::size_t>(layout.elements()), 1.0F));
    world.reduce(gradients, layout);
    return world.method(0).steps();
  };
  EXPECT_EQ(bring(first), 1);
  EXPECT_EQ(bring(second), 1);
  EXPECT_EQ(bring(second), 2) << "a step may bring fewer buckets";
  EXPECT_EQ(bring(first), 2);
  EXPECT_EQ(bring(both), 3) << "buckets may change between steps";
  EXPECT_EQ(bring(both), 4);
  EXPECT_EQ(bring(first), 5);
  world.method(0).restore(9, {});
  EXPECT_EQ(bring(second), 10) << "the step under way has ended";
}

// Whatever a program asks of its threads, and of some of them only.
TEST(Method, BitsDoNotDependOnTheCallersArithmetic) {
  const layout::Layout layout({{"a", 0, 70'000, 10, {700, 100}}, {"b", 70'000, 50, 1, {50}}});
  for (const std::string& name : names()) {
    if (::scalecom::testing::device().is_cuda() && name != "scalecom") continue;
    std::vector<Gradients> results;
    for (const bool is_odd : {false, true}) {
      World world(3, name);
      std::mt19937 random(1);
      for (int step = 0; step < 3; ++step) {
        Gradients gradients = testing::normal(3, layout.elements(), random);
        // About the least normal numbers.
        for (auto& one : gradients) {
          for (float& value : one) value = std::ldexp(value, -125);
        }
        world.run([&](int rank) {
          std::optional<core::OddArithmetic> odd;
          if (is_odd && rank == 1) odd.emplace();
          auto& mine = gradients[static_cast<std::size_t>(rank)];
          world.reduce_at(rank, core::Buffer::of(mine.data(), layout.elements()), layout);
        });
        results.push_back(std::move(gradients));
      }
    }
    for (std::size_t step = 0; step < 3; ++step) {
      for (std::size_t rank = 0; rank < 3; ++rank) {
        EXPECT_TRUE(testing::same_bits(results[3 + step][rank], results[step][0]))
            << name << ", step " << step << ", rank " << rank;
      }
    }
  }
}

TEST(Method, RefusesAGradientThatIsNotItsLayouts) {
  World world(1, "dense");
  Gradients gradients(1, std::vector<float>(9, 1.0F));
  EXPECT_THROW(world.reduce(gradients, layout_of({{10, 1}})), core::UsageError);
  EXPECT_EQ(world.method(0).steps(), 0) << "a refused call is not a step";
  float numbers[3] = {1, 2, 3};
  auto* odd = reinterpret_cast<char*>(numbers) + 1;
  const layout::Layout two = layout_of({{2, 1}});
  EXPECT_THROW(world.method(0).reduce({odd, 2}, two, world.end(0)), core::UsageError);
  EXPECT_THROW(world.method(0).reduce({nullptr, 2}, two, world.end(0)), core::UsageError);
}

TEST(Method, RefusesAGradientThatIsElsewhere) {
  World world(1, "scalecom,rate=2");
  std::vector<float> numbers(10, 1.0F);
  const layout::Layout ten = layout_of({{10, 2}});
  const core::Buffer host = core::Buffer::of(numbers.data(), 10);
  core::Buffer claimed = host;
  claimed.device = core::Device::cuda();
  const core::Stream stream = core::Stream::wrap(core::Device::cuda(), nullptr);
  Method& method = world.method(0);
  EXPECT_THROW(method.reduce(claimed, ten, world.end(0)), core::UsageError);
  EXPECT_THROW(method.reduce(host, ten, world.end(0), stream), core::UsageError);
  EXPECT_THROW(method.reduce(claimed, ten, world.end(0), stream), core::UsageError);
  EXPECT_EQ(method.steps(), 0) << "a refused call is not a step";
  EXPECT_EQ(numbers, std::vector<float>(10, 1.0F));
}

// The same error on all ranks, and nobody is left waiting.
TEST(Method, RanksThatDifferAllSaySo) {
  const int size = 3;
  auto ends = comm::inproc::make_world(size, std::chrono::seconds(20));
  World threads(size, "dense");
  const layout::Layout usual = layout_of({{1000, 10}, {7, 1}});
  const layout::Layout other = layout_of({{1000, 20}, {7, 1}});
  struct Case {
    std::string odd_spec;
    const layout::Layout* odd_layout;
    std::int64_t odd_steps;
    std::string named;
  };
  for (const Case& one :
       {Case{"scalecom,rate=50", &usual, 0, "rate=50"}, Case{"dense", &usual, 0, "'dense'"},
        Case{"scalecom,rate=10", &other, 0, "rank 2"},
        Case{"scalecom,rate=10", &usual, 5, "step 5"}}) {
    std::vector<std::string> errors(size);
    threads.run([&](int rank) {
      const bool odd = rank == 2;
      const auto method = make(odd ? one.odd_spec : "scalecom,rate=10");
      method->restore(odd ? one.odd_steps : 0, {});
      std::vector<float> gradient(1007, 1.0F);
      try {
        method->reduce(core::Buffer::of(gradient.data(), 1007), odd ? *one.odd_layout : usual,
                       *ends[static_cast<std::size_t>(rank)]);
      } catch (const core::UsageError& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
    EXPECT_FALSE(errors[0].empty());
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_EQ(errors[0], errors[2]);
    EXPECT_NE(errors[0].find(one.named), std::string::npos) << errors[0];
  }
}

// They agreed before, and one of them has been told something else since.
TEST(Method, RanksThatDifferLaterAllSaySo) {
  const layout::Layout layout = layout_of({{1000, 10}, {7, 1}});
  struct Case {
    std::function<void(Method&, bool odd)> change;
    std::string named;
  };
  for (const Case& one :
       {Case{[](Method&method, bool odd) { method.configure(odd ? "decay=0.5" : "decay=1"); },
             "decay=0.5"},
        Case{[](Method&method, bool odd) { method.restore(odd ? 5 : 1, {}); }, "step 5"}}) {
    World world(3, "scalecom,rate=10");
    Gradients gradients(3, std::vector<float>(1007, 1.0F));
    world.reduce(gradients, layout);
    for (int rank = 0; rank < 3; ++rank) one.change(world.method(rank), rank == 2);
    std::vector<std::string> errors(3);
    world.run([&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      try {
        world.reduce_at(rank, core::Buffer::of(gradients[at].data(), 1007), layout);
      } catch (const core::UsageError& error) {
        errors[at] = error.what();
      }
    });
    EXPECT_NE(errors[0].find(one.named), std::string::npos) << errors[0];
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_EQ(errors[0], errors[2]);
    for (int rank = 0; rank < 3; ++rank) one.change(world.method(rank), false);
    world.reduce(gradients, layout);
  }
}

// What is kept between buckets for all of them has room for the largest so far.
TEST(Method, ALargerBucketMayFollow) {
  const auto bits_of = [](World& world, const std::string& name, std::int64_t elements) {
    const layout::Layout layout({{name, 0, elements, 10}});
    std::vector<std::vector<std::uint16_t>> bits(2);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      for (std::int64_t i = 0; i < elements; ++i) {
        const auto value = static_cast<float>((i * 7919 + static_cast<std::int64_t>(rank)) % 101);
        bits[rank].push_back(core::to_bfloat16_bits(value));
      }
    }
    world.run([&](int rank) {
      auto& mine = bits[static_cast<std::size_t>(rank)];
      world.reduce_at(rank, {mine.data(), elements, core::DType::kBFloat16}, layout);
    });
    EXPECT_EQ(bits[0], bits[1]);
    return bits[0];
  };
  for (const std::string spec : {"dense", "half,values=bf16", "scalecom,values=bf16"}) {
    World grown(2, spec);
    World fresh(2, spec);
    bits_of(grown, "x", 30);
    EXPECT_EQ(bits_of(grown, "y", 300'000), bits_of(fresh, "y", 300'000)) << spec;
  }
}

// One rank cannot begin: none does, all say so, and all can go on once that is mended.
TEST(Method, WhatOneRankCannotBeginNoneBegins) {
  World world(3, "scalecom,rate=10");
  World untouched(3, "scalecom,rate=10");
  const layout::Layout first = layout_of({{200, 10}});
  const layout::Layout second({{"x", 0, 300, 10}});
  std::mt19937 random(5);
  Gradients one = testing::normal(3, 200, random);
  Gradients same = one;
  world.reduce(one, first);
  untouched.reduce(same, first);
  const auto restore = [](Method& method, std::int64_t length) {
    Memories memories;
    for (const NamedMemory& memory : method.memories()) {
      core::AlignedArray<float> copy(static_cast<std::int64_t>(memory.values.size()));
      std::copy(memory.values.begin(), memory.values.end(), copy.begin());
      memories.emplace(memory.name, std::move(copy));
    }
    memories.erase("x");
    if (length > 0) memories.emplace("x", core::AlignedArray<float>(length));
    method.restore(1, std::move(memories));
  };
  for (int rank = 0; rank < 3; ++rank) {
    restore(world.method(rank), rank == 1 ? 7 : 0);  // rank 1 gets another model's
    restore(untouched.method(rank), 0);
  }
  Gradients two = testing::normal(3, 300, random);
  Gradients spare = two;
  std::vector<std::string> errors(3);
  world.run([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    try {
      world.reduce_at(rank, core::Buffer::of(two[at].data(), 300), second);
    } catch (const core::UsageError& error) {
      errors[at] = error.what();
    }
  });
  EXPECT_NE(errors[0].find("is this the memory of another model?"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
  EXPECT_EQ(errors[0], errors[2]);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(world.method(rank).steps(), 1);
  EXPECT_TRUE(testing::same_bits(two[2], spare[2])) << "the gradient stays";

  for (int rank = 0; rank < 3; ++rank) restore(world.method(rank), 0);
  world.reduce(two, second);
  untouched.reduce(spare, second);
  EXPECT_TRUE(testing::same_bits(two[0], spare[0]));
}

TEST(Method, OnAWorkerStreamBucketsKeepTheirOrder) {
  const int size = 3;
  const layout::Layout x({{"x", 0, 5000, 10}});
  const layout::Layout y({{"y", 0, 3000, 10}});
  std::mt19937 random(3);
  std::vector<Gradients> steps;
  for (int i = 0; i < 12; ++i)
    steps.push_back(testing::normal(size, i % 2 == 0 ? 5000 : 3000, random));
  std::vector<Gradients> inline_steps = steps;

  World ordinary(size, "scalecom,rate=10");
  for (std::size_t i = 0; i < steps.size(); ++i)
    ordinary.reduce(inline_steps[i], i % 2 == 0 ? x : y);

  World streamed(size, "scalecom,rate=10");
  streamed.run([&](int rank) {
    const core::Stream stream = core::Stream::worker();
    std::vector<core::Work> pending;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      auto& mine = steps[i][static_cast<std::size_t>(rank)];
      pending.push_back(streamed.method(rank).start(
          core::Buffer::of(mine.data(), static_cast<std::int64_t>(mine.size())), i % 2 == 0 ? x : y,
          streamed.end(rank), stream));
    }
    for (core::Work& work : pending) work.wait();
  });
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (std::size_t r = 0; r < steps[i].size(); ++r) {
      EXPECT_TRUE(testing::same_bits(steps[i][r], inline_steps[i][r]));
    }
  }
}

// Rank 1 is of another program: its digest is of nothing, and its statement does not end.
TEST(Method, AStatementOfAPeerNeedNotEnd) {
  World world(2, "dense");
  world.run([&](int rank) {
    if (rank == 1) {
      comm::gather(world.end(rank), std::array<std::uint64_t, 3>{});
      std::array<char, 512> endless{};
      endless.fill('x');
      comm::gather(world.end(rank), endless);
      return;
    }
    std::vector<float> gradient(10, 1.0F);
    try {
      world.reduce_at(rank, core::Buffer::of(gradient.data(), 10), layout_of({{10, 1}}));
      ADD_FAILURE();
    } catch (const core::UsageError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("rank 1 has " + std::string(512, 'x') + ";"), std::string::npos) << what;
    }
  });
}

// Rank 1 is gone when rank 0 has made its memory.
TEST(Method, APeerLostBeforeTheFirstStepLeavesNoMemory) {
  World world(2, "scalecom,rate=10");
  const layout::Layout layout = layout_of({{100, 10}});
  world.run([&](int rank) {
    if (rank == 1) {
      comm::gather<std::array<std::uint64_t, 3>>(
          world.end(rank), {core::hash(world.method(rank).spec()), layout.fingerprint(), 0});
      return;
    }
    world.end(rank).set_deadline(std::chrono::milliseconds(300));
    std::vector<float> gradient(100, 1.0F);
    EXPECT_THROW(world.reduce_at(rank, core::Buffer::of(gradient.data(), 100), layout),
                 core::PeerError);
  });
  EXPECT_TRUE(world.method(0).memories().empty());
}

TEST(Method, RestoreRefusesWhatIsNotItsOwn) {
  const auto dense = make("dense");
  Memories memories;
  memories.emplace("x", core::AlignedArray<float>(4));
  EXPECT_THROW(dense->restore(3, std::move(memories)), core::UsageError);
  EXPECT_THROW(dense->restore(-1, {}), core::UsageError);
  EXPECT_THROW(dense->restore(kMostSteps + 1, {}), core::UsageError);
  EXPECT_THROW(make("dense,groups=2")->restore(kMostSteps + 1, {}), core::UsageError);
  EXPECT_EQ(dense->steps(), 0);
  dense->restore(kMostSteps, {});
  EXPECT_EQ(dense->steps(), kMostSteps);

  for (const std::int64_t length : {4, 104}) {
    World world(1, "scalecom,rate=10");
    Memories wrong;
    wrong.emplace("a", core::AlignedArray<float>(length));
    world.method(0).restore(3, std::move(wrong));
    Gradients gradients(1, std::vector<float>(100, 1.0F));
    EXPECT_THROW(world.reduce(gradients, layout_of({{100, 10}})), core::UsageError);
  }
}

}  // namespace
}  // namespace scalecom::methods
