#include "train/tasks/tasks.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/options.h"
#include "scalecom/core/text.h"
#include "train/tasks/cifar10.h"
#include "train/tasks/fashion_mnist.h"
#include "train/tasks/fsdd.h"
#include "train/tasks/multi30k.h"
#include "train/tasks/synthetic.h"

namespace train::tasks {
namespace {

struct Entry {
  const char* name;
  Recipe (*recipe)(const Settings& settings);
  std::unique_ptr<Task> (*make)(const Settings& settings, const Options& options);
};

constexpr std::array kEntries{Entry{"cifar10", cifar10::recipe, cifar10::make},
                              Entry{"fashion-mnist", fashion_mnist::recipe, fashion_mnist::make},
                              Entry{"fsdd", fsdd::recipe, fsdd::make},
                              Entry{"multi30k", multi30k::recipe, multi30k::make},
                              Entry{"synthetic", synthetic::recipe, synthetic::make}};

/// A task, and how it is wanted.
struct Wanted {
  const Entry& entry;
  Settings settings;
};

const Entry& find(const std::string& name) {
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry;
  }
  throw scalecom::core::UsageError(scalecom::core::concat(
      "[task] '", name, "' is not a task; there are ", scalecom::core::join(names())));
}

Wanted parse(const std::string& spec) {
  auto parts = scalecom::core::OptionString::parse(spec);
  return {find(parts.name), std::move(parts.settings)};
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> names(kEntries.size());
  std::transform(kEntries.begin(), kEntries.end(), names.begin(),
                 [](const Entry& entry) { return entry.name; });
  return names;
}

Recipe recipe(const std::string& spec) {
  const Wanted wanted = parse(spec);
  return wanted.entry.recipe(wanted.settings);
}

std::unique_ptr<Task> make(const std::string& spec, const Options& options) {
  const Wanted wanted = parse(spec);
  try {
    return wanted.entry.make(wanted.settings, options);
  } catch (const std::filesystem::filesystem_error& error) {
    // Such as a folder of somebody else's: not even what is in it can be asked for.
    throw scalecom::core::UsageError(scalecom::core::concat(
        "[data] ", error.path1().string(), " cannot be looked at: ", error.code().message(),
        "; choose another --data"));
  }
}

}  // namespace train::tasks
