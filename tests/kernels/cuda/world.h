#pragma once

#include <memory>
#include <vector>

#include "tests/kernels/cuda/device_rank.h"

namespace scalecom::kernels::testing {

using Slots = std::vector<std::vector<std::byte>>;

/// All ranks of a world, on the host and on the device, side by side: every operation is done by
/// both, and what it leaves is compared.
class World {
 public:
  World(const Setting& setting, Shifts shifts, bool captured, const core::Stream& stream) {
    for (int r = 0; r < setting.size; ++r) {
      host_.push_back(std::make_unique<HostRank>(setting, r));
      host_.back()->draw(Data::kZero, 1);
      device_.push_back(std::make_unique<DeviceRank>(*host_.back(), shifts, captured, stream));
    }
  }

  HostRank& host(int r) { return *host_[static_cast<std::size_t>(r)]; }
  DeviceRank& device(int r) { return *device_[static_cast<std::size_t>(r)]; }
  int size() const { return static_cast<int>(host_.size()); }

  void draw(Data data, std::uint32_t seed) {
    for (int r = 0; r < size(); ++r) {
      host(r).draw(data, seed);
      device(r).load(host(r));
    }
  }

  void first_pass() {
    for (int r = 0; r < size(); ++r) {
      host(r).first_pass();
      device(r).first_pass();
      // A follower's pass may come with take().
      if (host(r).setting.selection.kind == layout::Selection::Kind::kLargest &&
          host(r).naming() == cuda::Naming::kNone) {
        continue;
      }
      device(r).expect_same_arrays(host(r));
      device(r).expect_same_items(host(r), false);
      device(r).expect_same_rest(host(r));
      EXPECT_TRUE(same(device(r).packed(host(r)), host(r).packed))
          << "in the offsets of rank " << r;
    }
  }

  Slots slots() {
    Slots slots;
    for (int r = 0; r < size(); ++r) slots.push_back(host(r).packed);
    return slots;
  }

  void take() {
    for (int r = 0; r < size(); ++r) {
      host(r).take(slots());
      device(r).set_packed(slots());
      device(r).take();
      device(r).expect_same_arrays(host(r));
      device(r).expect_same_items(host(r), true);
      device(r).expect_same_rest(host(r));
    }
  }

  std::vector<float> sum() {
    std::vector<float> sum(host(0).message);
    for (int r = 1; r < size(); ++r) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += host(r).message[i];
    }
    return sum;
  }

  void finish(const std::vector<float>& sum) {
    const float factor = 1.0F / static_cast<float>(size());
    for (int r = 0; r < size(); ++r) {
      device(r).set_message(sum);
      host(r).finish(sum, factor);
      device(r).finish(factor);
      device(r).expect_same_arrays(host(r));
      EXPECT_EQ(device(r).sent(), host(r).sent);
    }
  }

  void put_back() {
    for (int r = 0; r < size(); ++r) {
      host(r).put_back();
      device(r).put_back();
      device(r).expect_same_arrays(host(r));
      EXPECT_FALSE(device(r).sent());
    }
  }

  void step(Data data, std::uint32_t seed) {
    draw(data, seed);
    first_pass();
    take();
    finish(sum());
  }

 private:
  std::vector<std::unique_ptr<HostRank>> host_;
  std::vector<std::unique_ptr<DeviceRank>> device_;
};

}  // namespace scalecom::kernels::testing
