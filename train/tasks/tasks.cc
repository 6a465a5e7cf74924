#include "train/tasks/tasks.h"

#include <algorithm>
#include <array>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "train/tasks/cifar10.h"
#include "train/tasks/fashion_mnist.h"
#include "train/tasks/synthetic.h"

namespace train::tasks {
namespace {

struct Entry {
  const char* name;
  Recipe (*recipe)();
  std::unique_ptr<Task> (*make)(const Options& options);
};

constexpr std::array kEntries{Entry{"cifar10", cifar10::recipe, cifar10::make},
                              Entry{"fashion-mnist", fashion_mnist::recipe, fashion_mnist::make},
                              Entry{"synthetic", synthetic::recipe, synthetic::make}};

const Entry& find(const std::string& name) {
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry;
  }
  throw scalecom::core::UsageError(scalecom::core::concat(
      "[task] '", name, "' is not a task; there are ", scalecom::core::join(names())));
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> names(kEntries.size());
  std::transform(kEntries.begin(), kEntries.end(), names.begin(),
                 [](const Entry& entry) { return entry.name; });
  return names;
}

Recipe recipe(const std::string& name) {
  return find(name).recipe();
}

std::unique_ptr<Task> make(const std::string& name, const Options& options) {
  return find(name).make(options);
}

}  // namespace train::tasks
