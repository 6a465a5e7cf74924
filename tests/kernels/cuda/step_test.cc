#include "scalecom/kernels/cuda/step.h"

#include <cstdlib>
#include <limits>

#include "tests/kernels/cuda/world.h"

namespace scalecom::kernels::testing {
namespace {

using Kind = layout::Selection::Kind;

// Under a checker that makes every access slow, a few cases are enough.
bool small() {
  static const bool set = std::getenv("SCALECOM_TEST_SMALL") != nullptr;
  return set;
}

std::int64_t sized(std::int64_t elements) {
  return small() ? std::max<std::int64_t>(1, elements / 8) : elements;
}

// Shapes of a bucket, by what is hard about them.
const std::vector<std::pair<std::string, std::vector<layout::Slice>>>& shapes() {
  static const auto made = [] {
    std::vector<std::pair<std::string, std::vector<layout::Slice>>> shapes;
    const auto add = [&](const char* name,
                         std::initializer_list<std::pair<std::int64_t, double>> of) {
      Setting setting;
      for (const auto& [length, rate] : of) setting.add(length, rate);
      shapes.emplace_back(name, setting.slices);
    };
    add("one", {{sized(100003), 100}});
    add("aligned", {{sized(65536), 64}});
    add("rates", {{sized(20000), 25}, {sized(30000), 400}, {sized(9000), 7}, {sized(4000), 2}});
    add("dense between",
        {{17, 1}, {sized(5001), 25}, {3, 1}, {0, 1}, {sized(7000), 33}, {sized(9001), 1}});
    add("tiny", {{1, 10}, {2, 2}, {3, 1.3}, {1, 1}, {5, 4}, {8, 8}, {9, 3}, {1, 3}, {64, 64}});
    add("long chunks", {{sized(40000), 1025}, {sized(30001), 5000}, {sized(200), 20}});
    add("longest", {{sized(250001), 100000}, {sized(8192), 1e9}, {sized(8200), 1024}});
    Setting many;
    for (int i = 0; i < (small() ? 12 : 60); ++i) many.add(1 + i * 37 % 700, i % 5 == 0 ? 1 : 20);
    shapes.emplace_back("many", many.slices);
    return shapes;
  }();
  return made;
}

class CudaStep : public ::testing::Test {
 protected:
  void SetUp() override {
    if (core::cuda::device_count() == 0) GTEST_SKIP() << "skipped: no CUDA device";
    stream_ = core::Stream::cuda(core::Device::cuda());
  }

  // Every kind of data, one after the other, as steps of one world.
  void run_all_data(const Setting& setting, Shifts shifts = {}, bool captured = false) {
    World world(setting, shifts, captured, stream_);
    std::uint32_t seed = 11;
    for (const Data data : kAllData) {
      SCOPED_TRACE("data " + std::to_string(static_cast<int>(data)));
      world.step(data, seed++);
      if (HasFailure()) return;
    }
  }

  // Over all shapes and gradient types.
  void run_all_shapes(Setting setting) {
    for (const auto& [name, slices] : shapes()) {
      SCOPED_TRACE(name);
      setting.slices = slices;
      int turn = 0;
      for (const DType dtype : kTypes) {
        SCOPED_TRACE(core::to_string(dtype));
        setting.dtype = dtype;
        setting.values = kTypes[turn];
        run_all_data(setting, {turn, (turn * 2) % 3});
        ++turn;
        if (HasFailure()) return;
      }
    }
  }

  // Rank 0's offsets reach rank 1 as something else.
  void damage(const Setting& setting, std::uint32_t trial) {
    World world(setting, {}, false, stream_);
    world.draw(Data::kNormal, 32 + trial);
    HostRank expected = world.host(1);
    for (std::size_t p = 0; p < expected.memories.size(); ++p) {
      const Tensor tensor = expected.tensor(p);
      table().accumulate(tensor, setting.filter, 0, tensor.length);
    }
    const std::vector<float> nan(static_cast<std::size_t>(expected.elements),
                                 std::numeric_limits<float>::quiet_NaN());
    table().store(nan.data(), expected.elements, 1.0F, expected.grad.data(), setting.dtype);
    expected.step = 1;

    world.first_pass();
    std::mt19937 random(31 + trial);
    Slots slots = world.slots();
    for (std::byte& byte : slots[0]) {
      byte = trial == 0 ? std::byte{0xff} : static_cast<std::byte>(random());
    }
    world.device(1).set_packed(slots);
    world.device(1).take();
    EXPECT_EQ(world.device(1).message().back(), 1.0F);
    world.device(1).finish(1.0F);
    world.device(1).expect_same_arrays(expected);
    EXPECT_FALSE(world.device(1).sent());

    // Rank 0 learns of it by the flag; both go on.
    world.host(0).take(world.slots());
    world.device(0).set_packed(world.slots());
    world.device(0).take();
    world.host(0).flag() = 1;
    world.device(0).set_message(world.host(0).message);
    world.host(0).finish(world.host(0).message, 1.0F);
    world.device(0).finish(1.0F);
    world.host(1) = expected;
    world.step(Data::kNormal, 50);
    world.step(Data::kNormal, 51);
    EXPECT_TRUE(world.host(1).sent);
  }

  core::Stream stream_;
};

// Each a test of its own: under a sanitizer all of them together take longer than one would wait.
class CudaStepOfRanks : public CudaStep, public ::testing::WithParamInterface<int> {};
class CudaStepOfChunks : public CudaStep, public ::testing::WithParamInterface<std::int64_t> {};
class CudaStepOfSharedChunks : public CudaStepOfChunks {};

TEST_P(CudaStepOfRanks, LargestOfEachChunk) {
  Setting setting;
  setting.size = GetParam();
  run_all_shapes(setting);
}

TEST_P(CudaStepOfRanks, LargestBySharedLeaders) {
  Setting setting;
  setting.size = GetParam();
  setting.sharded = true;
  run_all_shapes(setting);
}

INSTANTIATE_TEST_SUITE_P(, CudaStepOfRanks, ::testing::Values(1, 2, 3, 8));

TEST_P(CudaStepOfChunks, TopOfEachChunk) {
  Setting setting;
  setting.selection = {Kind::kTop, GetParam()};
  setting.size = 2;
  run_all_shapes(setting);
}

INSTANTIATE_TEST_SUITE_P(, CudaStepOfChunks,
                         ::testing::Values(1, 7, 64, 1000, 1024, 1025, 9000, 100000));

TEST_P(CudaStepOfSharedChunks, TopBySharedLeaders) {
  Setting setting;
  setting.selection = {Kind::kTop, GetParam()};
  setting.sharded = true;
  setting.size = 3;
  run_all_shapes(setting);
}

INSTANTIATE_TEST_SUITE_P(, CudaStepOfSharedChunks, ::testing::Values(50, 1024, 3000));

TEST_F(CudaStep, Random) {
  Setting setting;
  setting.selection = {Kind::kRandom, 0};
  setting.size = 2;
  run_all_shapes(setting);
}

TEST_F(CudaStep, Exact) {
  for (const int size : {1, 2}) {
    Setting setting;
    setting.selection = {Kind::kExact, 0};
    setting.size = size;
    run_all_shapes(setting);
  }
}

TEST_F(CudaStep, FiltersAndValueTypes) {
  for (const Filter filter : {Filter{1.0F, 1.0F}, Filter{0.1F, 0.9F}, Filter{0.7F, 0.5F}}) {
    for (const DType values : kTypes) {
      for (const Kind kind : {Kind::kLargest, Kind::kExact}) {
        Setting setting;
        setting.add(sized(10007), 30);
        setting.add(5, 1);
        setting.add(sized(9999), 11);
        setting.selection = {kind, 0};
        setting.filter = filter;
        setting.values = values;
        setting.size = 2;
        run_all_data(setting);
      }
    }
  }
}

TEST_F(CudaStep, EveryAlignment) {
  for (const DType dtype : kTypes) {
    for (std::int64_t grad = 0; grad < (small() ? 2 : 9); ++grad) {
      for (std::int64_t memory = 0; memory < (small() ? 2 : 4); ++memory) {
        Setting setting;
        setting.add(sized(9001), 50);
        setting.add(sized(8192), 1);
        setting.dtype = dtype;
        World world(setting, {grad, memory}, false, stream_);
        world.step(Data::kSpecial, 3);
        setting.selection = {Kind::kExact, 0};
        World exact(setting, {grad, memory}, false, stream_);
        exact.step(Data::kTies, 4);
      }
    }
  }
}

TEST_F(CudaStep, ManyBlocks) {
  for (const Kind kind : {Kind::kLargest, Kind::kExact, Kind::kRandom}) {
    Setting setting;
    setting.add(sized(3000000), 100);
    setting.add(sized(600), 1);
    setting.add(sized(1500001), 25);
    setting.selection = {kind, 0};
    World world(setting, {}, false, stream_);
    world.step(Data::kNormal, 5);
    world.step(Data::kTies, 6);
  }
}

TEST_F(CudaStep, AllDense) {
  Setting setting;
  setting.add(sized(30001), 1);
  setting.add(7, 1);
  setting.size = 2;
  run_all_data(setting);
}

TEST_F(CudaStep, ASumThatIsNotFiniteIsRefused) {
  for (const Kind kind : {Kind::kLargest, Kind::kTop, Kind::kExact, Kind::kRandom}) {
    for (const DType dtype : kTypes) {
      Setting setting;
      setting.add(sized(50000), 20);
      setting.add(100, 1);
      setting.add(sized(3000), 30);
      setting.selection = {kind, 500};
      setting.dtype = dtype;
      World world(setting, {}, false, stream_);
      for (const bool dense : {false, true}) {
        world.draw(Data::kNormal, 8);
        world.first_pass();
        std::vector<float> sum = world.sum();
        const auto items = static_cast<std::size_t>(world.host(0).shape.items);
        sum[dense ? items + 31 : items / 2] = std::numeric_limits<float>::infinity();
        world.finish(sum);
        EXPECT_FALSE(world.host(0).sent);
      }
      // The next step is as if there had been no such one.
      world.step(Data::kNormal, 9);
      EXPECT_TRUE(world.host(0).sent);
    }
  }
}

TEST_F(CudaStep, WhatWasSentIsPutBack) {
  for (const Kind kind : {Kind::kLargest, Kind::kTop, Kind::kExact, Kind::kRandom}) {
    Setting setting;
    setting.add(sized(40000), 20);
    setting.add(sized(100), 30);
    setting.selection = {kind, 300};
    setting.size = 2;
    World world(setting, {}, false, stream_);
    world.put_back();  // there is nothing
    world.step(Data::kNormal, 12);
    world.put_back();
    world.put_back();
    world.step(Data::kNormal, 13);
    world.step(Data::kSpecial, 14);  // refused
    world.put_back();
  }
}

TEST_F(CudaStep, RoundingIsSettledWhereItemsWereSent) {
  for (const Kind kind : {Kind::kLargest, Kind::kExact}) {
    Setting setting;
    setting.add(sized(40000), 20);
    setting.add(sized(900), 30);
    setting.add(sized(12345), 30);
    setting.selection = {kind, 0};
    setting.values = DType::kBFloat16;
    World world(setting, {}, false, stream_);
    for (const Data data : {Data::kNormal, Data::kSpecial}) {
      world.step(data, 21);
      const std::int64_t items = world.host(0).shape.items;
      for (const std::int64_t first : {std::int64_t{0}, items / 3}) {
        std::vector<float> rounding(static_cast<std::size_t>(items - first - items / 4));
        for (std::size_t i = 0; i < rounding.size(); ++i) {
          rounding[i] = static_cast<float>(i) * 0.37F;
        }
        world.host(0).settle_rounding(first, rounding);
        world.device(0).settle_rounding(first, rounding);
        world.device(0).expect_same_arrays(world.host(0));
      }
    }
  }
}

// Damaged offsets: the step is refused, the memories are those of a rank that sent nothing.
TEST_F(CudaStep, DamagedOffsetsDoNoHarm) {
  for (const Kind kind : {Kind::kLargest, Kind::kTop, Kind::kExact}) {
    for (const bool sharded : {false, true}) {
      if (sharded && kind == Kind::kExact) continue;
      Setting setting;
      setting.add(sized(20001), 25);
      setting.add(7, 5);
      setting.add(sized(30000), 300);
      setting.selection = {kind, 200};
      setting.size = 2;
      setting.sharded = sharded;
      for (std::uint32_t trial = 0; trial < 4; ++trial) damage(setting, trial);
    }
  }
}

TEST_F(CudaStep, GraphsAreReplayed) {
  for (const Kind kind : {Kind::kLargest, Kind::kTop, Kind::kExact, Kind::kRandom}) {
    for (const bool sharded : {false, true}) {
      if (sharded && (kind == Kind::kExact || kind == Kind::kRandom)) continue;
      Setting setting;
      setting.add(sized(50001), 50);
      setting.add(33, 1);
      setting.add(sized(9000), 3000);
      setting.selection = {kind, 700};
      setting.size = 3;
      setting.sharded = sharded;
      World world(setting, {}, true, stream_);
      for (std::uint32_t step = 0; step < 7; ++step) {
        world.step(step == 3 ? Data::kSpecial : Data::kNormal, 40 + step);
        if (step == 4) world.put_back();
      }
    }
  }
}

}  // namespace
}  // namespace scalecom::kernels::testing
