#include <functional>

#include "scalecom/core/error.h"
#include "scalecom/core/options.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/dense.h"
#include "scalecom/methods/half.h"
#include "scalecom/methods/scalecom/scalecom.h"

namespace scalecom::methods {
namespace {

struct Entry {
  std::string name;
  std::function<std::unique_ptr<Method>(const core::OptionString&)> make;
  std::function<std::string()> allowed;
};

// A new method is one line here.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> list = {
      {"dense", make_dense, dense_options},
      {"half", make_half, half_options},
      {"scalecom", scalecom::make, scalecom::allowed_options},
  };
  return list;
}

const Entry& find(const std::string& name) {
  for (const Entry& entry : entries()) {
    if (entry.name == name) return entry;
  }
  throw core::UsageError(
      core::concat("[method] no method '", name, "'; allowed: ", core::join(names())));
}

}  // namespace

std::unique_ptr<Method> make(const std::string& spec) {
  const core::OptionString options = core::OptionString::parse(spec);
  return find(options.name).make(options);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Entry& entry : entries()) all.push_back(entry.name);
  return all;
}

std::string describe(const std::string& name) {
  return find(name).allowed();
}

}  // namespace scalecom::methods
