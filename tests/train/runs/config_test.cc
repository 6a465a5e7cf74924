#include "train/runs/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "tests/train/folder.h"

namespace train::runs {
namespace {

using scalecom::core::UsageError;

Request request() {
  Request request;
  request.task = "synthetic";
  request.method = "scalecom,rate=25";
  request.learners = 8;
  return request;
}

std::string error(const std::function<void(Request&)>& change) {
  return message_of<UsageError>([&] {
    Request changed = request();
    change(changed);
    const Config config = resolve(changed);
    resolve_steps(changed, config, 1000);
  });
}

TEST(ConfigTest, TheTaskDecidesWhatIsLeftOut) {
  const Config config = resolve(request());
  EXPECT_EQ(config.batch, 16);
  EXPECT_EQ(config.learning_rate, tasks::recipe("synthetic").learning_rate);
  EXPECT_NE(config.spec.find("beta="), std::string::npos);
  EXPECT_EQ(config.method, "scalecom,rate=25");
}

TEST(ConfigTest, TheLearningRateGrowsWithTheRootOfTheSamplesOfAStep) {
  Request asked = request();
  asked.learners = 32;
  EXPECT_DOUBLE_EQ(resolve(asked).learning_rate, 2 * tasks::recipe("synthetic").learning_rate);
  asked.batch = 4;
  EXPECT_DOUBLE_EQ(resolve(asked).learning_rate, tasks::recipe("synthetic").learning_rate);
  asked.learning_rate = 0.5;
  EXPECT_EQ(resolve(asked).learning_rate, 0.5);
}

TEST(ConfigTest, ARunIsResumedFromAnyFolder) {
  Request asked = request();
  EXPECT_TRUE(resolve(asked).data.empty());
  asked.data = "some/data";
  EXPECT_EQ(resolve(asked).data, std::filesystem::current_path() / "some/data");
}

TEST(ConfigTest, AMethodThatBringsMomentumIsGivenNone) {
  Request asked = request();
  EXPECT_FALSE(resolve(asked).optimizer_options().gradient_has_momentum);
  asked.method = "dgc,rate=25";
  EXPECT_TRUE(resolve(asked).optimizer_options().gradient_has_momentum);
}

TEST(ConfigTest, HowOftenLearnersAreComparedIsKept) {
  Request asked = request();
  EXPECT_EQ(resolve(asked).similarity_every, 0);
  EXPECT_FALSE(to_json(resolve(asked)).contains("similarity_every"));
  asked.similarity_every = 50;
  nlohmann::ordered_json json = to_json(resolve(asked));
  json["steps"] = 1;
  EXPECT_EQ(config_from_json(json).similarity_every, 50);
  json["similarity_every"] = -1;
  EXPECT_NE(message_of<UsageError>([&] { config_from_json(json); }).find("'similarity_every' -1"),
            std::string::npos);
  for (const std::int64_t wrong : {0, -5}) {
    EXPECT_NE(error([&](Request& r) {
                r.similarity_every = wrong;
              }).find(scalecom::core::concat("--similarity-every ", wrong, " is out of range")),
              std::string::npos);
  }
}

TEST(ConfigTest, MaskedMomentumIsKeptAndOldRunsHaveNone) {
  Request asked = request();
  asked.masked_momentum = true;
  nlohmann::ordered_json json = to_json(resolve(asked));
  json["steps"] = 1;
  EXPECT_TRUE(config_from_json(json).optimizer_options().masked);
  json.erase("masked_momentum");
  json.erase("optimizer");
  EXPECT_FALSE(config_from_json(json).optimizer_options().masked);
  EXPECT_EQ(config_from_json(json).optimizer, optimizers::Optimizer::Kind::kSgd);
  json["optimizer"] = "lamb";
  EXPECT_NE(message_of<UsageError>([&] { config_from_json(json); }).find("sgd and adam"),
            std::string::npos);
}

TEST(ConfigTest, AdamHasAMomentumOfItsOwn) {
  Request asked = request();
  asked.task = "fsdd";
  EXPECT_EQ(resolve(asked).optimizer, optimizers::Optimizer::Kind::kAdam);
  EXPECT_NE(error([](Request& r) {
              r.task = "fsdd";
              r.method = "dgc";
            }).find("brings its own momentum"),
            std::string::npos);
  EXPECT_NE(error([](Request& r) {
              r.task = "fsdd";
              r.masked_momentum = true;
            }).find("--momentum masked is SGD's"),
            std::string::npos);
}

TEST(ConfigTest, TheWarmupIsThatOfTheMethod) {
  EXPECT_EQ(warmup_of(resolve(request()).spec), 0);
  EXPECT_EQ(warmup_of("scalecom,rate=25,warmup=70,beta=0.1"), 70);
  EXPECT_EQ(warmup_of("dense"), 0);
}

TEST(ConfigTest, EpochsBecomeSteps) {
  Request asked = request();
  asked.epochs = 1.5;
  EXPECT_EQ(resolve_steps(asked, resolve(asked), 1000), 12);  // 1500 / 128, rounded up
  asked.steps = 3;
  EXPECT_EQ(resolve_steps(asked, resolve(asked), 1000), 3);
}

// On two cores they take about a minute each, unless told otherwise.
TEST(ConfigTest, SmallSettingsAreShort) {
  EXPECT_LE(tasks::recipe("cifar10,model=resnet8").epochs, 3);
  EXPECT_LE(tasks::recipe("fsdd,size=small").epochs, 10);
  EXPECT_LE(tasks::recipe("multi30k,size=small").epochs, 3);
  EXPECT_GE(tasks::recipe("cifar10").epochs, 20);
}

TEST(ConfigTest, RefusesWhatCannotBe) {
  EXPECT_EQ(error([](Request& r) { r.learners = 0; }),
            "[train] --learners 0 is out of range; give 1 to 1024");
  EXPECT_NE(error([](Request& r) { r.task = "imagenet"; }).find("fashion-mnist, fsdd"),
            std::string::npos);
  EXPECT_NE(error([](Request& r) { r.method = "scalecom,beta=2"; }).find("beta"),
            std::string::npos);
  EXPECT_NE(error([](Request& r) { r.batch = 0; }).find("--batch 0"), std::string::npos);
  EXPECT_NE(error([](Request& r) { r.learning_rate = -1; }).find("--lr -1"), std::string::npos);
  EXPECT_NE(error([](Request& r) { r.learning_rate_warmup = 1; }).find("--lr-warmup 1"),
            std::string::npos);
  EXPECT_NE(error([](Request& r) { r.learning_rate_warmup = -0.1; }).find("--lr-warmup -0.1"),
            std::string::npos);
  EXPECT_NE(error([](Request& r) { r.weight_decay = -1; }).find("--weight-decay -1"),
            std::string::npos);
  EXPECT_NE(error([](Request& r) { r.seed = -1; }).find("--seed -1"), std::string::npos);
  for (const int groups : {0, 9}) {
    EXPECT_NE(error([&](Request& r) {
                r.groups = groups;
              }).find(scalecom::core::concat("--groups ", groups, " is out of range; give 1 to 8")),
              std::string::npos);
  }
  EXPECT_NE(error([](Request& r) { r.steps = 0; }).find("--steps 0"), std::string::npos);
  EXPECT_NE(error([](Request& r) { r.epochs = 0; }).find("--epochs 0"), std::string::npos);
  EXPECT_NE(error([](Request& r) { r.epochs = 1e300; }).find("--epochs"), std::string::npos);
}

TEST(ConfigTest, LearnersDivideIntoGroups) {
  EXPECT_EQ(error([](Request& r) {
              r.method = "scalecom,groups=4";
              r.learners = 6;
            }),
            "[train] 6 learners do not divide into groups of 4");
  Request eight = request();
  eight.method = "scalecom";
  eight.learners = 8;
  eight.groups = 4;
  Config config = resolve(eight);
  EXPECT_THROW(change_learners(config, 6), UsageError);
  EXPECT_EQ(config.learners, 8);
  change_learners(config, 12);
  EXPECT_EQ(config.learners, 12);
  for (const char* spec : {"scalecom,groups=0", "scalecom,groups=many"}) {
    config.spec = spec;
    EXPECT_THROW(change_learners(config, 8), UsageError) << spec;
  }
}

TEST(ConfigTest, SurvivesJson) {
  Config config = resolve(request());
  config.steps = 77;
  config.seed = 0xfffffffffffffff1;
  config.data = "/some/data";
  config.recipe = "cifar10-scalecom@2";
  const auto text = to_json(config).dump();
  const Config back = config_from_json(nlohmann::ordered_json::parse(text));
  EXPECT_EQ(to_json(back), to_json(config));
  EXPECT_EQ(back.seed, config.seed);
  EXPECT_EQ(back.data, config.data);
  EXPECT_EQ(back.recipe, config.recipe);
}

TEST(ConfigTest, RefusesDamagedJson) {
  Config config = resolve(request());
  config.steps = 77;
  const auto whole = to_json(config);
  for (const auto& [key, value] : whole.items()) {
    if (key == "optimizer" || key == "masked_momentum") continue;  // runs of old have neither
    auto damaged = whole;
    damaged.erase(key);
    EXPECT_THROW(config_from_json(damaged), UsageError) << key;
  }
  auto damaged = whole;
  damaged["learners"] = -4;
  EXPECT_THROW(config_from_json(damaged), UsageError);
  damaged["learners"] = "four";
  EXPECT_THROW(config_from_json(damaged), UsageError);
  // Numbers that would become others.
  const std::vector<std::pair<const char*, nlohmann::ordered_json>> others{
      {"learners", 4294967300},
      {"learners", 2.5},
      {"learners", true},
      {"learners", 0},
      {"steps", 1.5},
      {"steps", 18446744073709551615U},
      {"batch", 4294967297},
      {"seed", -1},
      {"seed", 0.5},
      {"learning_rate", 0},
      {"learning_rate_warmup", 1.0},
      {"learning_rate_warmup", -0.1},
      {"momentum", 1.0},
      {"weight_decay", -1e-4}};
  for (const auto& [key, value] : others) {
    damaged = whole;
    damaged[key] = value;
    EXPECT_THROW(config_from_json(damaged), UsageError) << key << " " << value;
  }
  EXPECT_THROW(config_from_json(nlohmann::ordered_json::array()), UsageError);
}

}  // namespace
}  // namespace train::runs
