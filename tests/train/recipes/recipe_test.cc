#include "train/recipes/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "scalecom/core/error.h"
#include "tests/train/folder.h"

namespace train::recipes {
namespace {

using nlohmann::ordered_json;
using scalecom::core::UsageError;

ordered_json some_recipe() {
  return {{"version", 3},
          {"task", "synthetic"},
          {"learners", 8},
          {"method", "scalecom,rate=20"},
          {"groups", 4},
          {"epochs", 2.5},
          {"batch", 7},
          {"learning_rate", 0.3},
          {"learning_rate_warmup", 0.25},
          {"weight_decay", 0.002},
          {"momentum", "masked"},
          {"seeds", {4, 5}},
          {"baseline", "other"}};
}

std::string error(const std::string& key, const ordered_json& value) {
  ordered_json json = some_recipe();
  json[key] = value;
  return message_of<UsageError>([&] { parse("mine", json, "mine.json"); });
}

TEST(RecipeTest, SaysAllOfARun) {
  const Recipe recipe = parse("mine", some_recipe(), "mine.json");
  const runs::Config config = runs::resolve(recipe.request);
  EXPECT_EQ(config.learners, 8);
  EXPECT_EQ(config.method, "scalecom,rate=20,groups=4");
  EXPECT_EQ(config.batch, 7);
  EXPECT_EQ(config.learning_rate, 0.3);
  EXPECT_EQ(config.learning_rate_warmup, 0.25);
  EXPECT_EQ(config.weight_decay, 0.002);
  EXPECT_TRUE(config.masked_momentum);
  EXPECT_EQ(config.recipe, "mine@3");
  EXPECT_EQ(runs::config_from_json(to_json([&] {
              runs::Config whole = config;
              whole.steps = 1;
              return whole;
            }()))
                .recipe,
            "mine@3");
  EXPECT_EQ(recipe.seeds, (std::vector<std::int64_t>{4, 5}));
}

TEST(RecipeTest, RefusesWhatIsNotOne) {
  EXPECT_NE(error("colour", "red").find("'colour' is not a key of a recipe; there are version"),
            std::string::npos);
  EXPECT_NE(error("seeds", "many").find("'seeds' cannot be \"many\""), std::string::npos);
  for (const ordered_json& number : ordered_json::parse("[4294967304, 2.5, true, -1, 0]")) {
    EXPECT_NE(error("learners", number).find("is no whole number from 1"), std::string::npos);
    EXPECT_NE(error("batch", number).find("is no whole number from 1"), std::string::npos);
  }
  EXPECT_NE(error("seeds", {1, 2.5}).find("is no whole number from 0"), std::string::npos);
  EXPECT_NE(error("momentum", "none").find("plain or masked"), std::string::npos);
  EXPECT_NE(error("method", "scalecom,beta=3").find("beta"), std::string::npos);
  EXPECT_NE(error("task", "synthetic,size=9").find("size"), std::string::npos);
  EXPECT_NE(error("seeds", ordered_json::array()).find("empty"), std::string::npos);
  EXPECT_NE(error("seeds", {1, 1}).find("twice"), std::string::npos);
  for (const char* key : {"version", "task", "learners", "method", "seeds"}) {
    ordered_json json = some_recipe();
    json.erase(key);
    EXPECT_NE(message_of<UsageError>([&] {
                parse("mine", json, "mine.json");
              }).find(std::string("mine.json: it has no '") + key),
              std::string::npos);
  }
  EXPECT_NE(message_of<UsageError>([] { find("imagenet"); }).find("cifar10-resnet18-32x"),
            std::string::npos);
}

TEST(RecipeTest, AFileIsOneToo) {
  const Folder folder;
  const auto path = folder / "mine.json";
  std::ofstream(path) << some_recipe().dump();
  EXPECT_EQ(find(path.string()).name, "mine");
  std::ofstream(path) << "{\"version\": " << std::string(1'000'000, '[');
  EXPECT_NE(message_of<UsageError>([&] { find(path.string()); }).find("mine.json"),
            std::string::npos);
  std::ofstream(path) << "{";
  EXPECT_NE(message_of<UsageError>([&] { find(path.string()); }).find("mine.json"),
            std::string::npos);
}

// Everything that the program carries with it can be run, and is compared with what is like it.
TEST(RecipeTest, ThoseOfTheProgramAreSound) {
  const std::vector<std::string> all = names();
  const std::set<std::string> known(all.begin(), all.end());
  EXPECT_GT(all.size(), 40U);
  for (const std::string& name : all) {
    const Recipe recipe = find(name);
    EXPECT_FALSE(recipe.about.empty()) << name;
    const bool is_dense = recipe.request.method == "dense";
    EXPECT_EQ(recipe.baseline.empty(), is_dense) << name;
    if (is_dense) continue;
    ASSERT_TRUE(known.count(recipe.baseline)) << name;
    const Recipe baseline = find(recipe.baseline);
    EXPECT_EQ(baseline.request.method, "dense") << name;
    EXPECT_EQ(baseline.request.task, recipe.request.task) << name;
    EXPECT_EQ(baseline.request.learners, recipe.request.learners) << name;
    EXPECT_EQ(baseline.request.epochs, recipe.request.epochs) << name;
    EXPECT_EQ(baseline.request.batch, recipe.request.batch) << name;
    EXPECT_EQ(baseline.request.learning_rate, recipe.request.learning_rate) << name;
    EXPECT_EQ(baseline.request.learning_rate_warmup, recipe.request.learning_rate_warmup) << name;
    for (const std::int64_t seed : recipe.seeds) {
      EXPECT_EQ(std::count(baseline.seeds.begin(), baseline.seeds.end(), seed), 1) << name;
    }
  }
}

}  // namespace
}  // namespace train::recipes
