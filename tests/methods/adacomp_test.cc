#include "scalecom/methods/adacomp/adacomp.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "tests/methods/shapes.h"

namespace scalecom::methods {
namespace {

using testing::copies_of;
using testing::Gradients;
using testing::layout_for;
using testing::small_model;
using testing::World;

// AdaComp stated again, as plainly as it can be: one rank's tensor, bin by bin.
struct PlainTensor {
  std::vector<float> r;
  std::int64_t bin = 500;
  std::int64_t words = 0;  // of the last step's message

  // What is sent, where it lies.
  std::vector<float> step(const std::vector<float>& g) {
    std::vector<float> G(g.size()), H(g.size()), sent(g.size(), 0.0F);
    for (std::size_t i = 0; i < g.size(); ++i) {
      G[i] = r[i] + g[i];
      H[i] = G[i] + g[i];
    }
    std::vector<bool> chosen(g.size(), false);
    double largest_sum = 0;
    double bins = 0;
    words = 0;
    for (std::size_t begin = 0; begin < g.size(); begin += static_cast<std::size_t>(bin)) {
      const std::size_t end = std::min(g.size(), begin + static_cast<std::size_t>(bin));
      float largest = 0;
      for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(G[i]));
      std::int64_t count = 0;
      for (std::size_t i = begin; i < end; ++i) {
        chosen[i] = std::abs(H[i]) >= largest && G[i] != 0;
        count += chosen[i] ? 1 : 0;
      }
      words += std::max<std::int64_t>(1, count);
      largest_sum += largest;
      bins += 1;
    }
    const auto scale = static_cast<float>(largest_sum / bins);
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (chosen[i]) sent[i] = G[i] > 0 ? scale : -scale;
      r[i] = G[i] - sent[i];
    }
    return sent;
  }
};

TEST(AdaComp, DoesWhatThePlainStatementDoes) {
  const layout::Layout layout = layout_for("adacomp", small_model());
  std::mt19937 random(1);
  for (const int size : {1, 2, 3, 5}) {
    World world(size, "adacomp,bin=64");
    std::vector<std::map<std::string, PlainTensor>> plain(static_cast<std::size_t>(size));
    for (auto& one : plain) {
      for (const layout::Slice& slice : layout.slices()) {
        const bool conv = slice.shape.size() == 4;
        one[slice.name] = {std::vector<float>(static_cast<std::size_t>(slice.length), 0.0F),
                           conv ? 50 : 64};
      }
    }
    for (int step = 0; step < 6; ++step) {
      Gradients gradients = testing::normal(size, layout.elements(), random);
      const Gradients in = gradients;
      world.reduce(gradients, layout);
      const float factor = 1.0F / static_cast<float>(size);
      for (const layout::Slice& slice : layout.slices()) {
        const auto first = static_cast<std::size_t>(slice.offset);
        std::vector<float> expected(static_cast<std::size_t>(slice.length), 0.0F);
        for (std::size_t r = 0; r < in.size(); ++r) {
          const std::vector<float> g(in[r].begin() + slice.offset,
                                     in[r].begin() + slice.offset + slice.length);
          const bool dense = slice.shape.size() < 2;
          const std::vector<float> sent = dense ? g : plain[r].at(slice.name).step(g);
          for (std::size_t i = 0; i < sent.size(); ++i) {
            expected[i] += dense ? sent[i] * factor : sent[i];
          }
          if (!dense) {
            ASSERT_EQ(copies_of(world.method(static_cast<int>(r))).at(slice.name),
                      plain[r].at(slice.name).r);
          }
        }
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const float mean = slice.shape.size() < 2 ? expected[i] : expected[i] * factor;
          ASSERT_EQ(gradients[0][first + i], mean) << slice.name << " " << i;
        }
      }
    }
  }
}

// What crossed the network is what was packed: a word for every entry and every bin without one.
TEST(AdaComp, CountersEqualTheSumOfWhatWasPacked) {
  const layout::Layout layout = layout_for("adacomp", small_model());
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    World world(size, "adacomp");
    std::vector<std::map<std::string, PlainTensor>> plain(static_cast<std::size_t>(size));
    std::mt19937 random(2);
    for (std::int64_t step = 0; step < 4; ++step) {
      std::vector<comm::Counters> before;
      for (int r = 0; r < size; ++r) before.push_back(world.end(r).counters());
      Gradients gradients = testing::normal(size, layout.elements(), random);
      std::vector<std::int64_t> bytes;
      std::int64_t total = 0;
      for (std::size_t r = 0; r < gradients.size(); ++r) {
        bytes.push_back(0);
        for (const layout::Slice& slice : layout.slices()) {
          if (slice.shape.size() < 2) continue;
          PlainTensor& tensor = plain[r][slice.name];
          tensor.bin = slice.shape.size() == 4 ? 50 : 500;
          tensor.r.resize(static_cast<std::size_t>(slice.length), 0.0F);
          tensor.step({gradients[r].begin() + slice.offset,
                       gradients[r].begin() + slice.offset + slice.length});
          bytes.back() += 8 + tensor.words * (tensor.bin == 50 ? 1 : 2);
        }
        total += bytes.back();
      }
      world.reduce(gradients, layout);
      if (step == 0) continue;  // in which the ranks also agree on what they do
      for (int r = 0; r < size; ++r) {
        const comm::Counters moved = world.end(r).counters() - before[static_cast<std::size_t>(r)];
        const std::int64_t mine = bytes[static_cast<std::size_t>(r)];
        EXPECT_EQ(moved[comm::Call::kAllGather].sent, (size - 1) * (mine + 16));
        EXPECT_EQ(moved[comm::Call::kAllGather].received, total - mine + (size - 1) * 16);
        EXPECT_EQ(moved, world.method(r).cost(layout, size, r, step));
      }
    }
  }
}

// No room is made for what no message of this layout can have.
TEST(AdaComp, AnAnnouncementThatCannotBeIsAPeerError) {
  const layout::Layout layout = layout_for("adacomp", small_model());
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t bytes : {kMost, kMost / 2, std::int64_t{1} << 40, std::int64_t{-1},
                                   std::int64_t{0}, 2 * layout.elements() + 1000}) {
    World world(2, "adacomp");
    std::mt19937 random(3);
    Gradients gradients = testing::normal(2, layout.elements(), random);
    world.reduce(gradients, layout);  // in which the ranks agree on what they do
    world.run([&](int rank) {
      if (rank == 1) {
        comm::gather<std::array<std::int64_t, 2>>(world.end(rank), {bytes, 1});
        return;
      }
      EXPECT_THROW(
          world.reduce_at(rank, core::Buffer::of(gradients[0].data(), layout.elements()), layout),
          core::PeerError)
          << bytes;
    });
  }
}

// A gradient of which every element is sent: the longest message there is.
TEST(AdaComp, TheLongestMessageArrives) {
  const layout::Layout layout = layout_for("adacomp", small_model());
  World world(2, "adacomp");
  Gradients gradients(2, std::vector<float>(static_cast<std::size_t>(layout.elements()), 1.0F));
  world.reduce(gradients, layout);
  EXPECT_EQ(gradients[0], std::vector<float>(gradients[0].size(), 1.0F));
}

// Positions, and the bytes of a tensor's words, are numbers of 32 bits.
TEST(AdaComp, ATensorOfTooManyElementsIsRefused) {
  const auto cost = [](std::int64_t rows, std::int64_t columns) {
    const layout::Layout layout({{"a", 0, rows * columns, 1, {rows, columns}}});
    return make("adacomp")->cost(layout, 2, 0, 0);
  };
  EXPECT_NO_THROW(cost(1 << 20, 1 << 10));
  EXPECT_THROW(cost(1 << 20, 1 << 11), core::UsageError) << "4 GiB of words";
  EXPECT_THROW(cost(1 << 20, 1 << 13), core::UsageError);
}

TEST(AdaComp, RefusesWhatItCannotDo) {
  for (const std::string bad : {"adacomp,bin=0", "adacomp,bin=16384", "adacomp,conv_bin=-1",
                                "adacomp,rate=10", "adacomp,nonfinite=x"}) {
    EXPECT_THROW(make(bad), core::UsageError) << bad;
  }
  const std::string full = make("adacomp,bin=16383,conv_bin=1")->spec();
  EXPECT_EQ(make(full)->spec(), full);
}

}  // namespace
}  // namespace scalecom::methods
