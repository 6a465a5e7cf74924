#include <algorithm>
#include <functional>

#include "scalecom/core/error.h"
#include "scalecom/core/options.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/adacomp/adacomp.h"
#include "scalecom/methods/dense.h"
#include "scalecom/methods/dgc/dgc.h"
#include "scalecom/methods/groups/grouped.h"
#include "scalecom/methods/gtopk.h"
#include "scalecom/methods/half.h"
#include "scalecom/methods/powersgd/powersgd.h"
#include "scalecom/methods/scalecom/scalecom.h"
#include "scalecom/methods/sketched_sgd/sketched_sgd.h"
#include "scalecom/methods/topk/topk.h"

namespace scalecom::methods {
namespace {

constexpr const char* kGroups = "groups";

struct Entry {
  std::string name;
  std::function<std::unique_ptr<Method>(const core::OptionString&)> make;
  std::function<std::string()> allowed;
  bool grouped = false;  // whether its ranks share one set, so that groups= works
};

// A new method is one line here.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> list = {
      {"dense", make_dense, dense_options, true},
      {"half", make_half, half_options, true},
      {"scalecom", scalecom::make, scalecom::allowed_options, true},
      {"weighted", scalecom::make_weighted, scalecom::weighted_options, true},
      {"topk", topk::make, topk::allowed_options},
      {"gtopk", make_gtopk, gtopk_options},
      {"dgc", dgc::make, dgc::allowed_options},
      {"adacomp", adacomp::make, adacomp::allowed_options},
      {"powersgd", powersgd::make, powersgd::allowed_options},
      {"sketched_sgd", sketched_sgd::make, sketched_sgd::allowed_options},
  };
  return list;
}

auto find_groups(core::OptionString& options) {
  return std::find_if(options.settings.begin(), options.settings.end(),
                      [](const auto& setting) { return setting.first == kGroups; });
}

const Entry& find(const std::string& name) {
  for (const Entry& entry : entries()) {
    if (entry.name == name) return entry;
  }
  throw core::UsageError(
      core::concat("[method] no method '", name, "'; allowed: ", core::join(names())));
}

std::string allowed(const Entry& entry) {
  std::string own = entry.allowed();
  if (!entry.grouped) return own;
  return core::concat(own == "none" ? "" : own + ", ", kGroups, "=<node | ranks of a group>");
}

// The method's own refusal would leave out groups=, which is none of its own options.
void check_keys(const Entry& entry, const core::OptionString& options) {
  const std::string known = ", " + allowed(entry);
  for (const auto& [key, value] : options.settings) {
    if (known.find(core::concat(", ", key, "=<")) != std::string::npos) continue;
    throw core::UsageError(
        core::concat("[", entry.name, "] no option '", key, "'; allowed: ", allowed(entry)));
  }
}

}  // namespace

std::unique_ptr<Method> make(const std::string& spec) {
  core::OptionString options = core::OptionString::parse(spec);
  const Entry& entry = find(options.name);
  if (entry.grouped) check_keys(entry, options);
  const auto groups = find_groups(options);
  if (!entry.grouped || groups == options.settings.end()) return entry.make(options);
  const auto grouping = groups::Grouping::parse(groups->second);
  options.settings.erase(groups);
  return groups::make(entry.make(options), grouping);
}

std::optional<std::string> groups_of(const std::string& spec) {
  core::OptionString options = core::OptionString::parse(spec);
  const auto groups = find_groups(options);
  if (groups == options.settings.end()) return std::nullopt;
  return groups->second;
}

std::string without_groups(const std::string& spec) {
  core::OptionString options = core::OptionString::parse(spec);
  const auto groups = find_groups(options);
  if (groups == options.settings.end()) return spec;
  options.settings.erase(groups);
  std::string text = options.name;
  for (const auto& [key, value] : options.settings) text += core::concat(",", key, "=", value);
  return text;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Entry& entry : entries()) all.push_back(entry.name);
  return all;
}

std::string describe(const std::string& name) {
  return allowed(find(name));
}

}  // namespace scalecom::methods
