#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "scalecom/layout/rates.h"
#include "scalecom/methods/method.h"
#include "train/models/mobilenet.h"
#include "train/models/recogniser.h"
#include "train/models/resnet.h"
#include "train/models/transformer.h"
#include "train/recipes/recipe.h"

// What the rows of the reproduction claim, held against their networks: nothing is trained here.
namespace train::recipes {
namespace {

namespace layout = scalecom::layout;
namespace methods = scalecom::methods;

/// The network of a task, and the samples of its training set.
struct Subject {
  std::vector<layout::Tensor> tensors;
  double samples = 0;
};

template <typename Span>
std::vector<layout::Tensor> copy(const Span& tensors) {
  return {tensors.begin(), tensors.end()};
}

Subject subject_of(const std::string& task, std::int64_t batch) {
  if (task == "cifar10,model=mobilenetv2") {
    models::MobileNetOptions options;
    options.batch = batch;
    return {copy(models::make_mobilenet(options)->tensors()), 50000};
  }
  if (task.starts_with("cifar10")) {
    models::ResNetOptions options;
    options.batch = batch;
    if (task == "cifar10,model=resnet34") options.blocks = {3, 4, 6, 3};
    return {copy(models::make_resnet(options)->tensors()), 50000};
  }
  if (task == "multi30k") {
    models::TransformerOptions options;
    options.batch = batch;
    return {copy(models::make_transformer(options)->parameters().tensors()), 29000};
  }
  if (task != "fsdd") throw std::logic_error("no network is known for " + task);
  models::RecogniserOptions options;
  options.batch = batch;
  return {copy(models::make_recogniser(options)->parameters().tensors()), 2700};
}

struct Row {
  Recipe recipe;
  runs::Config config;
  Subject subject;

  double steps() const {
    return *recipe.request.epochs * subject.samples /
           static_cast<double>(config.batch * config.learners);
  }
};

std::vector<Row> compressing_rows() {
  std::vector<Row> rows;
  for (const std::string& name : names()) {
    const Recipe recipe = find(name);
    if (recipe.request.method == "dense") continue;
    const runs::Config config = runs::resolve(recipe.request);
    rows.push_back({recipe, config, subject_of(config.task, config.batch)});
  }
  return rows;
}

double sent(const Row& row, const std::string& spec) {
  const auto method = methods::make(spec);
  const layout::Layout bucket = layout::make_layout(row.subject.tensors, method->rate_policy());
  const std::int64_t late = 1 << 20;
  const auto cost = method->level_cost(bucket, row.config.learners, 0, late);
  return static_cast<double>(cost.between.total().sent);
}

/// How much less it sends than a dense reduction would over the same links.
double effective_rate(const Row& row) {
  const auto groups = row.recipe.request.groups;
  return sent(row, groups ? "dense,groups=" + std::to_string(*groups) : "dense") /
         sent(row, row.config.spec);
}

// A row whose method falls back to sending tensors whole, or whose first layer is most of it, is
// not what its name says. Top-K is left out: its traffic grows with the learners, up to dense's.
TEST(RowsTest, SendMuchLessThanDense) {
  for (const Row& row : compressing_rows()) {
    if (row.config.spec.starts_with("topk")) continue;
    EXPECT_GT(effective_rate(row), 20) << row.recipe.name;
  }
}

// Where a tensor's entry is sent a few times in all, what training comes to says nothing of a
// method. PowerSGD sends something of every entry in each step.
TEST(RowsTest, SendEveryEntrySeveralTimes) {
  for (const Row& row : compressing_rows()) {
    if (row.config.spec.starts_with("powersgd")) continue;
    const double rate = methods::make(row.config.spec)->rate_policy().rate;
    EXPECT_GT((row.steps() - static_cast<double>(runs::warmup_of(row.config.spec))) / rate, 5)
        << row.recipe.name;
  }
}

// A row without the filter is its recipe in all else.
TEST(RowsTest, DifferByTheirFilterAlone) {
  const std::string suffix = "-beta1";
  int pairs = 0;
  for (const Row& row : compressing_rows()) {
    const std::string& name = row.recipe.name;
    if (!name.ends_with(suffix) || name.find("-lr") != std::string::npos) continue;
    const runs::Config with =
        runs::resolve(find(name.substr(0, name.size() - suffix.size())).request);
    std::string without = row.config.spec;
    without.replace(without.find("beta=1,"), 7, "beta=0.1,");
    EXPECT_EQ(without, with.spec) << name;
    EXPECT_EQ(row.config.learners, with.learners) << name;
    ++pairs;
  }
  EXPECT_EQ(pairs, 7);
}

// As the paper's rows do; but speech with 4 learners, which dense learns nothing of in its first
// 300 steps, is compressed when it has begun to.
TEST(RowsTest, WarmUpForATenthAtMost) {
  for (const Row& row : compressing_rows()) {
    const double most = row.recipe.name == "fsdd-4x" ? 0.17 : 0.101;
    EXPECT_LE(static_cast<double>(runs::warmup_of(row.config.spec)), most * row.steps())
        << row.recipe.name;
  }
}

}  // namespace
}  // namespace train::recipes
