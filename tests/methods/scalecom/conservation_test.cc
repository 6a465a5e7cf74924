#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/methods/scalecom/scalecom.h"
#include "tests/device.h"
#include "tests/methods/ranks.h"

// Nothing is lost: what went in was sent, or is held.
namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::World;

// On whole numbers at beta = 1 everything is exact, so the books must balance to the last unit.
TEST(Conservation, WholeNumbersAreNeverLost) {
  std::mt19937 random(21);
  const layout::Layout layout = layout_of({{3000, 30}, {50, 100}, {1111, 7}});
  for (const std::string spec :
       {"scalecom,beta=1", "scalecom,beta=1,select=chunk:300", "scalecom,beta=1,select=exact",
        "scalecom,beta=1,select=random", "scalecom,beta=1,leaders=sharded",
        "scalecom,beta=1,leaders=sharded,select=chunk:64"}) {
    for (const int size : {1, 2, 4, 8}) {
      World world(size, spec);
      std::vector<double> in(static_cast<std::size_t>(layout.elements()), 0.0);
      std::vector<double> sent = in;
      for (int step = 0; step < 100; ++step) {
        Gradients gradients = testing::integers(size, layout.elements(), 50, random);
        for (const auto& one : gradients) {
          for (std::size_t i = 0; i < in.size(); ++i) in[i] += one[i];
        }
        world.reduce(gradients, layout);
        // n is a power of two, so the mean times n is the sum that was sent, exactly.
        for (std::size_t i = 0; i < in.size(); ++i) {
          sent[i] += static_cast<double>(gradients[0][i]) * size;
        }
      }
      std::vector<double> held(in.size(), 0.0);
      for (int r = 0; r < size; ++r) {
        for (const NamedMemory& memory : world.method(r).memories()) {
          const auto slice = std::find_if(layout.slices().begin(), layout.slices().end(),
                                          [&](const auto& s) { return s.name == memory.name; });
          for (std::size_t i = 0; i < memory.values.size(); ++i) {
            held[static_cast<std::size_t>(slice->offset) + i] += memory.values[i];
          }
        }
      }
      for (std::size_t i = 0; i < in.size(); ++i) {
        ASSERT_EQ(in[i], sent[i] + held[i]) << spec << " size " << size << " entry " << i;
      }
    }
  }
}

struct Case {
  std::string options;
  int size;
};
class Books : public ::testing::TestWithParam<Case> {};

// Hundreds of steps over changing layouts, with skipped steps and gradients that are not finite.
TEST_P(Books, BalanceThroughEverything) {
  const auto [options, size] = GetParam();
  World world(size, "scalecom,check=conserve," + options);
  const layout::Layout layouts[] = {
      layout_of({{400, 10}, {9, 1}, {260, 25}}), layout_of({{400, 40}, {9, 1}, {260, 5}}),
      layout_of({{400, 10}, {9, 1}, {260, 1}}),  // the last slice is dense for a while
  };
  std::mt19937 random(22);
  int refused = 0;
  for (int step = 0; step < 300; ++step) {
    const layout::Layout& layout = layouts[step / 20 % 3];
    Gradients gradients = testing::normal(size, layout.elements(), random);
    const bool spoilt = step % 17 == 5;
    if (spoilt) {
      // On one rank only, anywhere: leader or follower, sent or not, compressed or dense.
      auto& one = gradients[static_cast<std::size_t>(step % size)];
      one[random() % one.size()] = step % 2 == 0 ? std::nanf("") : INFINITY;
    }
    world.reduce(gradients, layout);
    for (const auto& one : gradients) {
      ASSERT_TRUE(
          spoilt ? std::all_of(one.begin(), one.end(), [](float x) { return std::isnan(x); })
                 : std::all_of(one.begin(), one.end(), [](float x) { return std::isfinite(x); }));
    }
    refused += spoilt ? 1 : 0;
    if (step % 13 == 7) {
      world.run([&](int rank) { world.method(rank).undo(); });
    }
  }
  EXPECT_GT(refused, 10);
}

INSTANTIATE_TEST_SUITE_P(
    EveryOption, Books,
    ::testing::Values(Case{"beta=1", 1}, Case{"beta=1", 3}, Case{"beta=0.1", 5},
                      Case{"beta=0.3,decay=0.98", 3}, Case{"beta=0.1,values=bf16", 3},
                      Case{"beta=0.1,values=fp16", 7},
                      Case{"beta=0.1,values=bf16,leaders=sharded", 5},
                      Case{"beta=0.05,select=chunk:50", 3}, Case{"beta=0.1,select=exact", 3},
                      Case{"beta=0.1,select=exact,values=fp16,decay=0.9", 4},
                      Case{"beta=0.1,select=random", 3}, Case{"beta=0.1,leaders=sharded", 7},
                      Case{"beta=0.1,leaders=sharded,select=chunk:30", 2}),
    [](const auto& info) {
      std::string name = info.param.options + "_" + std::to_string(info.param.size);
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

// The check can fail: one entry of one rank's memory, changed behind its back.
TEST(Conservation, TamperingIsFoundOnEveryRank) {
  if (::scalecom::testing::device().is_cuda()) GTEST_SKIP() << "a GPU's memories come as copies";
  std::mt19937 random(23);
  const layout::Layout layout = layout_of({{400, 10}});
  for (const float change : {1e-3F, -1.0F}) {
    World world(3, "scalecom,check=conserve");
    for (int step = 0; step < 4; ++step) {
      Gradients gradients = testing::normal(3, 400, random);
      world.reduce(gradients, layout);
    }
    const NamedMemory memory = world.method(1).memories().front();
    const_cast<float&>(memory.values[77]) += change;
    Gradients gradients = testing::normal(3, 400, random);
    int found = 0;
    std::mutex mutex;
    world.run([&](int rank) {
      auto& mine = gradients[static_cast<std::size_t>(rank)];
      try {
        world.reduce_at(rank, core::Buffer::of(mine.data(), 400), layout);
      } catch (const core::CheckError& error) {
        const std::lock_guard lock(mutex);
        EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
        ++found;
      }
    });
    EXPECT_EQ(found, 3);
  }
}

/// A network that adds to what it sums, the same at every rank.
class Adding final : public comm::Communicator {
 public:
  explicit Adding(comm::Communicator& real) : real_(real) {}

  float added = 0;

  int rank() const override { return real_.rank(); }
  int size() const override { return real_.size(); }
  void broadcast(std::span<std::byte> data, int root, const core::Stream& stream) override {
    real_.broadcast(data, root, stream);
  }
  void all_reduce(std::span<float> data, const core::Stream& stream) override {
    real_.all_reduce(data, stream);
    data.front() += added;
  }
  void reduce_scatter(std::span<float> data, const core::Stream& stream) override {
    real_.reduce_scatter(data, stream);
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::span<const std::int64_t> sizes, const core::Stream& stream) override {
    real_.all_gather(mine, all, sizes, stream);
  }
  void all_to_all(std::span<const std::byte> out, std::span<const std::int64_t> out_sizes,
                  std::span<std::byte> in, std::span<const std::int64_t> in_sizes,
                  const core::Stream& stream) override {
    real_.all_to_all(out, out_sizes, in, in_sizes, stream);
  }
  void send(std::span<const std::byte> data, int to, const core::Stream& stream) override {
    real_.send(data, to, stream);
  }
  void receive(std::span<std::byte> data, int from, const core::Stream& stream) override {
    real_.receive(data, from, stream);
  }
  void barrier() override { real_.barrier(); }
  std::unique_ptr<Communicator> split(int color, int key) override {
    return real_.split(color, key);
  }
  std::chrono::milliseconds deadline() const override { return real_.deadline(); }
  void set_deadline(std::chrono::milliseconds deadline) override { real_.set_deadline(deadline); }
  const comm::Counters& counters() const override { return real_.counters(); }

 private:
  comm::Communicator& real_;
};

// Every rank's own books balance; together they do not.
TEST(Conservation, WhatTheNetworkAddsIsFoundOnEveryRank) {
  const layout::Layout layout = layout_of({{400, 10}});
  comm::inproc::run(3, [&](comm::Communicator& comm) {
    Adding network(comm);
    const auto method = make("scalecom,check=conserve");
    std::vector<float> gradient(400, 1.0F);
    method->reduce(core::Buffer::of(gradient.data(), 400), layout, network);
    gradient.assign(400, 1.0F);
    network.added = 1e-3F;
    try {
      method->reduce(core::Buffer::of(gradient.data(), 400), layout, network);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const core::CheckError& error) {
      EXPECT_NE(std::string(error.what()).find(" arrived"), std::string::npos) << error.what();
    }
  });
}

// At every beta the sum of what is sent has the right mean: it follows the sum of what went in.
TEST(Conservation, WhatIsSentFollowsWhatGoesIn) {
  const layout::Layout layout = layout_of({{200, 10}});
  for (const std::string beta : {"1", "0.3", "0.1"}) {
    World world(3, "scalecom,beta=" + beta);
    std::vector<double> sent(200, 0.0);
    const int steps = 3000;
    for (int step = 0; step < steps; ++step) {
      Gradients gradients(3, std::vector<float>(200));
      for (std::size_t r = 0; r < 3; ++r) {
        for (std::size_t i = 0; i < 200; ++i) {
          gradients[r][i] = 1.0F + static_cast<float>(i % 10) * 0.1F;
        }
      }
      world.reduce(gradients, layout);
      for (std::size_t i = 0; i < 200; ++i) sent[i] += gradients[0][i];
    }
    for (std::size_t i = 0; i < 200; ++i) {
      const double mean = 1.0 + static_cast<double>(i % 10) * 0.1;
      EXPECT_NEAR(sent[i] / steps, mean, 0.05 * mean) << "beta " << beta << " entry " << i;
    }
  }
}

// In the second step rank 0 is of another program, and what it complains of does not end.
TEST(Conservation, AComplaintOfAPeerNeedNotEnd) {
  if (::scalecom::testing::device().is_cuda()) GTEST_SKIP() << "once is enough";
  World world(2, "scalecom,rate=10,select=random,check=conserve");
  const layout::Layout layout = layout_of({{100, 10}});
  std::mt19937 random(1);
  Gradients gradients = testing::normal(2, 100, random);
  world.reduce(gradients, layout);
  gradients = testing::normal(2, 100, random);
  world.run([&](int rank) {
    if (rank == 0) {
      std::vector<float> message(11);  // ten values and the flag
      world.end(rank).all_reduce(message);
      std::array<char, 256> endless{};
      endless.fill('x');
      comm::gather(world.end(rank), endless);
      return;
    }
    try {
      world.reduce_at(rank, core::Buffer::of(gradients[1].data(), 100), layout);
      ADD_FAILURE();
    } catch (const core::CheckError& error) {
      const std::string what = error.what();
      EXPECT_TRUE(what.ends_with("rank 0: " + std::string(240, 'x'))) << what;
    }
  });
}

}  // namespace
}  // namespace scalecom::methods
