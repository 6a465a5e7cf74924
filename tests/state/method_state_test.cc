#include "scalecom/state/method_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/memories.h"
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

// The mean over ranks of every memory, by name: of dgc the velocities too.
std::map<std::string, std::vector<double>> mean_memories(World& world) {
  std::map<std::string, std::vector<double>> means;
  for (int r = 0; r < world.size(); ++r) {
    for (const methods::NamedMemory& memory : world.method(r).memories()) {
      std::vector<double>& mean = means[memory.name];
      mean.resize(memory.values.size());
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += memory.values[i] / world.size();
    }
  }
  return means;
}

TEST(MethodState, EveryMethodWithAMemoryGoesOnAtAnyNumberOfRanks) {
  for (const std::string spec : {"topk", "gtopk", "dgc", "weighted,a=0.5,b=0.9"}) {
    const TemporaryFolder folder;
    World saved(4, spec);
    train(saved, 7, 3);
    save(saved, folder.path());
    const auto before = mean_memories(saved);
    EXPECT_EQ(before.contains("a/velocity"), spec == "dgc");
    for (const int size : {1, 2, 3, 4, 5, 8}) {
      World other(size, spec);
      load(other, folder.path());
      const auto after = mean_memories(other);
      ASSERT_EQ(after.size(), before.size()) << spec;
      for (const auto& [name, mean] : before) {
        for (std::size_t i = 0; i < mean.size(); ++i) {
          ASSERT_NEAR(after.at(name)[i], mean[i], 1e-6 * (std::abs(mean[i]) + 1)) << spec << size;
        }
      }
      train(other, 2, 4);
      if (size != 4) continue;
      train(saved, 2, 4);
      EXPECT_EQ(mean_memories(other), mean_memories(saved)) << spec << ": bit for bit";
    }
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

// One folder for all saves of a run, of which some are cut short.
TEST(MethodState, SavingAgainNeverLosesTheLastSave) {
  const TemporaryFolder folder;
  World saved(3, "scalecom");
  for (int written = 0; written < 3; ++written) {
    train(saved, 2, 5);
    save(saved, folder.path());
    EXPECT_EQ(files_in(folder.path()), 3U) << "the one before is gone";
    const std::vector<double> memory = mean_memory(saved);
    const std::int64_t steps = saved.method(0).steps();
    train(saved, 1, 6);
    const std::int64_t number = next_number(folder.path());
    for (int rank = 0; rank < written; ++rank) {
      save_method(folder.path(), saved.method(rank), rank, 3, {rank, 3}, number);
    }
    World resumed(3, "scalecom");
    load(resumed, folder.path());
    EXPECT_EQ(resumed.method(1).steps(), steps) << written;
    EXPECT_EQ(mean_memory(resumed), memory) << written;
  }
}

// The number of ranks changes, and steps go back, in the same folder.
TEST(MethodState, TheLastSaveIsLoadedWhateverCameBefore) {
  const TemporaryFolder folder;
  World loaded(2, "scalecom");
  for (const auto& [ranks, steps] : {std::pair(4, 9), {2, 3}, {3, 3}, {3, 5}, {1, 2}}) {
    World world(ranks, "scalecom");
    train(world, steps, 7);
    save(world, folder.path());
    EXPECT_EQ(files_in(folder.path()), static_cast<std::size_t>(ranks));
    EXPECT_EQ(describe(folder.path()).world, ranks);
    load(loaded, folder.path());
    EXPECT_EQ(loaded.method(1).steps(), steps);
  }
}

TEST(MethodState, RanksMayEachHaveAFolderOfTheirOwn) {
  const TemporaryFolder folder;
  const auto own = [&](int rank) { return folder / std::to_string(rank); };
  World saved(3, "scalecom");
  for (int times = 0; times < 3; ++times) {
    train(saved, 2, 8);
    // One rank's folder has seen a save more.
    if (times == 1) save_method(own(1), saved.method(1), 1, 3, {1, 3}, 5);
    saved.run([&](int rank) { save_method(own(rank), saved.method(rank), saved.end(rank)); });
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(files_in(own(rank)), 1U) << rank;
  }
  for (int rank = 0; rank < 3; ++rank) std::filesystem::copy(own(rank), folder / "all");
  World resumed(3, "scalecom");
  load(resumed, folder / "all");
  EXPECT_EQ(resumed.method(2).steps(), 6);
  EXPECT_EQ(mean_memory(resumed), mean_memory(saved));
}

TEST(MethodState, WhatOneRankCannotSaveLeavesTheLastSave) {
  const TemporaryFolder folder;
  World world(3, "scalecom");
  train(world, 4, 9);
  save(world, folder.path());
  train(world, 1, 10);
  put(folder / "file", "plain");
  world.run([&](int rank) {
    const auto place = rank == 1 ? folder / "file" : folder.path();
    EXPECT_THROW(save_method(place, world.method(rank), world.end(rank)), core::IoError);
  });
  World resumed(3, "scalecom");
  load(resumed, folder.path());
  EXPECT_EQ(resumed.method(0).steps(), 4);
  save(world, folder.path());
  load(resumed, folder.path());
  EXPECT_EQ(resumed.method(0).steps(), 5);
  EXPECT_EQ(files_in(folder.path()), 4U) << "three and the plain one";
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

// As an option that is younger than the save has its default.
TEST(MethodState, ASpecThatLacksAnOptionIsTheSame) {
  const TemporaryFolder folder;
  const std::vector<float> values(1000, 2.0F);
  state::save(folder.path(), 0, 1,
              {"topk,rate=10", 3, {{"a", values}}, "", methods::Learner{0, 1}});
  World world(1, "topk,rate=10,warmup=0");
  load(world, folder.path());
  EXPECT_EQ(world.method(0).steps(), 3);
  World other(1, "topk,rate=10,warmup=5");
  EXPECT_THROW(load_method(folder.path(), other.method(0), other.end(0)), core::UsageError);
}

// What is still to be sent, over all learners: of groups, put together from their members' parts.
std::map<std::string, std::vector<double>> whole_memory(World& world, int members) {
  std::map<std::string, std::vector<double>> mean;
  for (int r = 0; r < world.size(); ++r) {
    for (const methods::NamedMemory& memory : world.method(r).memories()) {
      const std::size_t bracket = memory.name.find('[');
      const std::size_t first =
          bracket == std::string::npos ? 0 : std::stoull(memory.name.substr(bracket + 1));
      std::vector<double>& whole = mean[memory.name.substr(0, bracket)];
      whole.resize(std::max(whole.size(), first + memory.values.size()));
      for (std::size_t i = 0; i < memory.values.size(); ++i) {
        whole[first + i] += memory.values[i] * members / world.size();
      }
    }
  }
  return mean;
}

TEST(MethodState, OfGroupsGoesOnBitForBit) {
  const TemporaryFolder folder;
  World uninterrupted(4, "scalecom,groups=2");
  train(uninterrupted, 5, 1);
  save(uninterrupted, folder.path());
  World resumed(4, "scalecom,groups=2");
  load(resumed, folder.path());
  EXPECT_EQ(resumed.method(3).steps(), 5);
  train(uninterrupted, 3, 2);
  train(resumed, 3, 2);
  EXPECT_EQ(whole_memory(uninterrupted, 2), whole_memory(resumed, 2));
}

TEST(MethodState, MovesToOtherGroups) {
  const TemporaryFolder folder;
  World saved(6, "scalecom,groups=2");
  train(saved, 5, 1);
  save(saved, folder.path());
  const auto before = whole_memory(saved, 2);
  EXPECT_EQ(describe(folder.path()).learners, 3);
  for (const auto& [ranks, members] : {std::pair(6, 3), {6, 1}, {12, 4}, {3, 1}, {1, 1}}) {
    World loaded(ranks, core::concat("scalecom,groups=", members));
    load(loaded, folder.path());
    // With gradients of zero, what a step sends is not in the memories any more: it is in the mean.
    Gradients gradients(static_cast<std::size_t>(ranks), std::vector<float>(1077, 0.0F));
    loaded.reduce(gradients, two_tensors());
    auto after = whole_memory(loaded, members);
    for (std::size_t i = 0; i < 1000; ++i) {
      ASSERT_NEAR(after["a"][i] + 0.1 * gradients[0][i], before.at("a")[i], 1e-6) << ranks;
    }
  }
  World plain(2, "scalecom");
  load(plain, folder.path());
  EXPECT_NEAR(whole_memory(plain, 1)["b"][3], before.at("b")[3], 1e-6);
}

TEST(MethodState, OfGroupsWithAMissingPartIsRefused) {
  const TemporaryFolder folder;
  const auto write = [&](int rank, const std::string& name, const std::vector<float>& values) {
    state::save(folder.path(), rank, 2,
                {"scalecom", 1, {{name, values}}, "", methods::Learner{0, 1}});
  };
  write(0, "a[0:2]", {1, 2});
  write(1, "a[3:4]", {4});
  try {
    state::load(folder.path(), 0, 1);
    FAIL();
  } catch (const core::UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("no memory of elements 2 to 3 of tensor 'a'"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace scalecom::state
