#include "train/loop/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "scalecom/core/error.h"
#include "scalecom/state/safetensors.h"
#include "tests/train/folder.h"
#include "tests/train/line_task.h"

namespace train::loop {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;
namespace methods = scalecom::methods;

std::unique_ptr<Replica> make_replica(
    optimizers::Optimizer::Kind optimizer = optimizers::Optimizer::Kind::kSgd) {
  runs::Config config;
  config.spec = "dense";
  config.optimizer = optimizer;
  return std::make_unique<Replica>(std::make_unique<LineTask>(), config, 1);
}

TEST(CheckpointTest, StandingComesBackToTheBit) {
  const Folder folder;
  const Standing standing{123,     7890, 4.56789012345678,
                          1.0 / 3, 17,   {{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}}};
  write_standing(folder / "", standing);
  const Standing back = read_standing(folder / "", 16);
  EXPECT_EQ(back.step, standing.step);
  EXPECT_EQ(back.samples, standing.samples);
  EXPECT_EQ(back.seconds, standing.seconds);
  EXPECT_EQ(back.loss, standing.loss);
  EXPECT_EQ(back.losses, standing.losses);
  ASSERT_EQ(back.tallies.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(back.tallies[i].sent, standing.tallies[i].sent);
    EXPECT_EQ(back.tallies[i].counted, standing.tallies[i].counted);
    EXPECT_EQ(back.tallies[i].steps, standing.tallies[i].steps);
    EXPECT_EQ(back.tallies[i].most, standing.tallies[i].most);
    EXPECT_EQ(back.tallies[i].inside, standing.tallies[i].inside);
  }
  std::ofstream(folder / "standing.json") << "{\"step\": 1";
  EXPECT_THROW(read_standing(folder / "", 16), core::UsageError);
}

// As they were written when a run could not change its learners.
TEST(CheckpointTest, AStandingWithoutSamplesHasThoseOfItsLearners) {
  const Folder folder;
  const char* const tally = R"({"sent": 1, "counted": 1, "steps": 1})";
  std::ofstream(folder / "standing.json")
      << R"({"step": 10, "seconds": 1, "loss": 0, "losses": 0, "traffic": [)" << tally << ", "
      << tally << "]}";
  EXPECT_EQ(read_standing(folder / "", 16).samples, 10 * 2 * 16);
  std::ofstream(folder / "standing.json")
      << R"({"step": 10, "seconds": 1, "loss": 0, "losses": 0, "traffic": []})";
  EXPECT_THROW(read_standing(folder / "", 16), core::UsageError);
}

TEST(CheckpointTest, AStandingThatCannotBeIsRefused) {
  const Folder folder;
  const auto refuses = [&](const std::string& step, const std::string& samples,
                           const std::string& tally) {
    std::ofstream(folder / "standing.json")
        << R"({"step": )" << step << R"(, "samples": )" << samples
        << R"(, "seconds": 1, "loss": 0, "losses": 0, "traffic": [)" << tally << "]}";
    try {
      read_standing(folder / "", 16);
    } catch (const core::UsageError& error) {
      return std::string(error.what()).find("standing.json is damaged") != std::string::npos;
    }
    return false;
  };
  const std::string tally = R"({"sent": 1, "counted": 1, "steps": 1})";
  EXPECT_FALSE(refuses("10", "20", tally));
  EXPECT_TRUE(refuses("-1", "20", tally));
  EXPECT_TRUE(refuses("1.5", "20", tally));
  EXPECT_TRUE(refuses("4611686018427387904", "20", tally));
  EXPECT_TRUE(refuses("10", "18446744073709551615", tally));
  EXPECT_TRUE(refuses("10", "20", "7"));
  EXPECT_TRUE(refuses("10", "20", R"({"sent": -1, "counted": 1, "steps": 1})"));
  // Added up over learners it would overflow.
  EXPECT_TRUE(refuses("10", "20", R"({"sent": 9223372036854775807, "counted": 1, "steps": 1})"));
  std::string many = tally;
  for (int learner = 1; learner <= runs::kMostLearners; ++learner) many += "," + tally;
  EXPECT_TRUE(refuses("10", "20", many));
}

TEST(CheckpointTest, ModelComesBackToTheBit) {
  const Folder folder;
  const auto replica = make_replica();
  for (std::size_t i = 0; i < 8; ++i) {
    replica->weights()[i] = std::ldexp(-1.2345F, -static_cast<int>(i) * 20);  // subnormals too
    replica->states()[0].values[i] = i == 0 ? NAN : static_cast<float>(i);
  }
  for (std::size_t i = 0; i < 4; ++i) replica->figures()[i] = 0.1F * static_cast<float>(i);
  write_model(folder / "", *replica, 3);
  const auto other = make_replica();
  EXPECT_EQ(read_model(folder / "", *other), 3);
  const auto same = [](std::span<float> a, std::span<float> b) {
    return std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
  };
  EXPECT_TRUE(same(replica->weights(), other->weights()));
  EXPECT_TRUE(same(replica->states()[0].values, other->states()[0].values));
  EXPECT_TRUE(same(replica->figures(), other->figures()));
}

// A task may compute with a copy of them.
TEST(CheckpointTest, TheTaskHearsOfTheModelThatWasRead) {
  const Folder folder;
  const auto replica = make_replica();
  write_model(folder / "", *replica, 3);
  const auto& task = dynamic_cast<const LineTask&>(replica->task());
  EXPECT_EQ(task.times_written, 0);
  read_model(folder / "", *replica);
  EXPECT_EQ(task.times_written, 1);
}

TEST(CheckpointTest, AdamKeepsBothOfItsMeans) {
  const Folder folder;
  const auto replica = make_replica(optimizers::Optimizer::Kind::kAdam);
  const std::vector<float> gradient{1, -2, 3, 0, 5, 6, 7, 8};
  replica->update(gradient, 0);
  write_model(folder / "", *replica, 1);
  const auto other = make_replica(optimizers::Optimizer::Kind::kAdam);
  read_model(folder / "", *other);
  replica->update(gradient, 1);
  other->update(gradient, 1);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(replica->weights()[i], other->weights()[i]);
  // A run of one optimizer cannot go on with another's.
  const auto sgd = make_replica();
  EXPECT_THROW(read_model(folder / "", *sgd), core::UsageError);
}

TEST(CheckpointTest, DamagedModelsAreRefused) {
  const Folder folder;
  const auto replica = make_replica();
  write_model(folder / "", *replica, 3);
  fs::resize_file(folder / "model.safetensors", fs::file_size(folder / "model.safetensors") - 1);
  EXPECT_THROW(read_model(folder / "", *replica), core::UsageError);
  fs::remove(folder / "model.safetensors");
  EXPECT_THROW(read_model(folder / "", *replica), core::UsageError);
}

TEST(CheckpointTest, AModelOfAnotherShapeIsRefused) {
  const Folder folder;
  const std::vector<float> values(6);
  scalecom::state::write_safetensors(
      folder / "model.safetensors",
      std::vector<scalecom::state::TensorView>{{"weights/a", {3, 2}, values}}, {});
  const auto replica = make_replica();
  const std::string message =
      message_of<core::UsageError>([&] { read_model(folder / "", *replica); });
  EXPECT_NE(message.find("'weights/a' has another shape"), std::string::npos) << message;
}

TEST(CheckpointTest, MemoriesComeBackToTheBit) {
  const Folder folder;
  const auto method = methods::make("scalecom,rate=2");
  methods::Memories memories;
  memories.emplace("a", core::AlignedArray<float>(6));
  for (int i = 0; i < 6; ++i) memories.at("a")[i] = 1.0F / static_cast<float>(i + 3);
  method->restore(5, std::move(memories));
  for (int learner = 0; learner < 2; ++learner) {
    write_memory(folder / "", learner, 2, *method, {learner, 2});
  }

  const auto other = methods::make("scalecom,rate=2");
  read_memory(folder / "", *other, {1, 2});
  EXPECT_EQ(other->steps(), 5);
  ASSERT_EQ(other->memories().size(), 1U);
  const auto values = other->memories()[0].values;
  EXPECT_TRUE(std::equal(values.begin(), values.end(), method->memories()[0].values.begin()));

  const auto different = methods::make("scalecom,rate=3");
  EXPECT_THROW(read_memory(folder / "", *different, {1, 2}), core::UsageError);
}

}  // namespace
}  // namespace train::loop
