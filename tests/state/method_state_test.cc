#include "scalecom/state/method_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "scalecom/core/error.h"
#include "tests/methods/ranks.h"
#include "tests/state/temporary_folder.h"

namespace scalecom::state {
namespace {

using methods::testing::Gradients;
using methods::testing::layout_of;
using methods::testing::World;

layout::Layout two_tensors() {
  return layout_of({{1000, 10}, {77, 5}});
}

void train(World& world, int steps, unsigned seed) {
  std::mt19937 random(seed);
  const layout::Layout layout = two_tensors();
  for (int step = 0; step < steps; ++step) {
    Gradients gradients = methods::testing::normal(world.size(), layout.elements(), random);
    world.reduce(gradients, layout);
  }
}

void save(World& world, const std::filesystem::path& folder) {
  world.run([&](int rank) { save_method(folder, world.method(rank), world.end(rank)); });
}

void load(World& world, const std::filesystem::path& folder) {
  world.run([&](int rank) { load_method(folder, world.method(rank), world.end(rank)); });
}

// The mean over ranks of the memory of tensor "a".
std::vector<double> mean_memory(World& world) {
  std::vector<double> mean(1000, 0.0);
  for (int r = 0; r < world.size(); ++r) {
    for (const methods::NamedMemory& memory : world.method(r).memories()) {
      if (memory.name != "a") continue;
      for (std::size_t i = 0; i < 1000; ++i) mean[i] += memory.values[i] / world.size();
    }
  }
  return mean;
}

TEST(MethodState, GoesOnBitForBit) {
  const TemporaryFolder folder;
  World uninterrupted(3, "scalecom,values=bf16");
  train(uninterrupted, 7, 1);
  save(uninterrupted, folder.path());
  World resumed(3, "scalecom,values=bf16");
  load(resumed, folder.path());
  EXPECT_EQ(resumed.method(0).steps(), 7);
  train(uninterrupted, 5, 2);
  train(resumed, 5, 2);
  EXPECT_EQ(mean_memory(uninterrupted), mean_memory(resumed));
}

TEST(MethodState, AnotherNumberOfRanksKeepsTheMean) {
  const TemporaryFolder folder;
  World four(4, "scalecom");
  train(four, 7, 3);
  save(four, folder.path());
  const std::vector<double> before = mean_memory(four);
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    World other(size, "scalecom");
    load(other, folder.path());
    const std::vector<double> after = mean_memory(other);
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_NEAR(after[i], before[i], 1e-6 * (std::abs(before[i]) + 1)) << size;
    }
    train(other, 2, 4);
  }
}

TEST(MethodState, WhatOneRankCannotLoadNobodyLoads) {
  const TemporaryFolder folder;
  World saved(3, "scalecom");
  train(saved, 4, 5);
  save(saved, folder.path());
  // The last byte of one rank's data.
  std::fstream file(folder.path() / "rank-00001-of-00003.safetensors",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x55');
  file.close();
  World world(3, "scalecom");
  train(world, 2, 6);
  const std::vector<double> before = mean_memory(world);
  world.run([&](int rank) {
    EXPECT_THROW(load_method(folder.path(), world.method(rank), world.end(rank)), core::UsageError);
  });
  EXPECT_EQ(mean_memory(world), before);
  EXPECT_EQ(world.method(2).steps(), 2);
}

TEST(MethodState, AnotherMethodsStateIsRefused) {
  const TemporaryFolder folder;
  World saved(2, "scalecom,beta=0.1");
  train(saved, 2, 7);
  save(saved, folder.path());
  for (const std::string spec : {"scalecom,beta=0.3", "dense"}) {
    World world(2, spec);
    world.run([&](int rank) {
      EXPECT_THROW(load_method(folder.path(), world.method(rank), world.end(rank)),
                   core::UsageError);
    });
  }
}

}  // namespace
}  // namespace scalecom::state
