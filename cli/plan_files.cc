#include "cli/plan_files.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "scalecom/core/error.h"
#include "scalecom/core/options.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/method.h"
#include "train/runs/json.h"

namespace cli {
namespace {

namespace core = scalecom::core;
namespace methods = scalecom::methods;
namespace plan = scalecom::plan;
using nlohmann::ordered_json;

bool is_file(const std::string& name) {
  return name.ends_with(".json") || name.find('/') != std::string::npos;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw core::UsageError(core::concat("[plan] ", path, " ", why));
}

ordered_json read(const std::string& path) {
  std::ifstream file(path);
  if (!file) refuse(path, "cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  if (auto json = train::runs::parse_json(text.str())) return *std::move(json);
  refuse(path, "is no JSON");
}

template <typename T>
T field(const ordered_json& object, const char* key, const std::string& path) {
  try {
    return object.at(key).get<T>();
  } catch (const ordered_json::exception&) {
    refuse(path, core::concat("lacks the field '", key, "', or it is of another kind"));
  }
}

double positive(const ordered_json& object, const char* key, const std::string& path) {
  const auto value = field<double>(object, key, path);
  if (!(value > 0)) refuse(path, core::concat("has '", key, "' of ", value, "; it is over 0"));
  return value;
}

double not_negative(const ordered_json& object, const char* key, const std::string& path) {
  const auto value = field<double>(object, key, path);
  if (!(value >= 0)) refuse(path, core::concat("has '", key, "' of ", value, "; it is 0 or more"));
  return value;
}

constexpr double kMillisecond = 1e-3;

// Of `bench step`: one method, the slower of its two parts.
std::vector<plan::KernelTime> of_step(const ordered_json& figures, const std::string& path) {
  if (!field<bool>(figures, "verified", path)) {
    refuse(path, "is of a step whose results were wrong");
  }
  const double slower =
      std::max(positive(figures, "step_ms", path), positive(figures, "follower_ms", path));
  const std::string spec =
      core::concat("scalecom,rate=", core::shortest(positive(figures, "rate", path)),
                   ",select=", field<std::string>(figures, "select", path));
  return {{spec, positive(figures, "elements", path), slower * kMillisecond}};
}

// The method and those options, written or not, that its own work depends on.
std::string measured_spec(const std::string& spec, const std::string& path) {
  // Options that change numbers, or how much is compressed of which tensor, and not the work.
  static const std::set<std::string> elsewhere{"beta", "a",     "decay", "b",     "warmup",
                                               "seed", "rates", "first", "groups"};
  core::OptionString options;
  try {
    options = core::OptionString::parse(methods::make(spec)->spec());
  } catch (const core::UsageError& error) {
    refuse(path, core::concat("has a method that is none: ", error.what()));
  }
  std::string text = options.name;
  for (const auto& [key, value] : options.settings) {
    if (!elsewhere.contains(key)) text += core::concat(",", key, "=", value);
  }
  return text;
}

// Of `bench reduce`.
std::vector<plan::KernelTime> of_reduce(const ordered_json& figures, const std::string& path) {
  std::vector<plan::KernelTime> times;
  const double elements = positive(figures, "elements", path);
  for (const ordered_json& row : field<std::vector<ordered_json>>(figures, "rows", path)) {
    // What a method takes on its own can be too short to be measured.
    times.push_back({measured_spec(field<std::string>(row, "method", path), path), elements,
                     not_negative(row, "kernel_ms", path) * kMillisecond});
  }
  return times;
}

}  // namespace

plan::Model plan_model(const std::string& name) {
  if (!is_file(name)) return plan::built_in_model(name);
  if (!std::ifstream(name)) refuse(name, "cannot be read");
  return plan::read_model(name);
}

plan::Kernels plan_kernels(const std::string& names) {
  std::vector<plan::KernelTime> times;
  std::string device;
  for (const std::string& name : core::split(names, ',')) {
    if (!is_file(name)) {
      if (name != names) refuse(name, "is no file; several --kernels are files of one machine");
      return plan::stored_kernels_of(name);
    }
    const ordered_json figures = read(name);
    if (!figures.is_object()) refuse(name, "is not what scalecom bench writes");
    const auto its_device = field<std::string>(figures, "device", name);
    if (!device.empty() && its_device != device) {
      refuse(name, core::concat("is of ", its_device, " and what is before it of ", device,
                                "; several --kernels are files of one machine"));
    }
    device = its_device;
    const auto more = figures.contains("rows") ? of_reduce(figures, name) : of_step(figures, name);
    times.insert(times.end(), more.begin(), more.end());
  }
  return {core::concat("the machine of ", names, " (", device, ")"), names, std::move(times)};
}

ordered_json to_json(const plan::Link& link) {
  ordered_json object{{"bandwidth", link.bandwidth}, {"latency", link.latency}};
  for (const plan::HopTime& hop : link.timed) {
    object["hops"].push_back({{"sent_bytes", hop.sent_bytes}, {"seconds", hop.seconds}});
  }
  return object;
}

plan::Link plan_link(const std::string& path) {
  const ordered_json file = read(path);
  const auto network = field<ordered_json>(file, "network", path);
  plan::Link link;
  link.bandwidth = positive(network, "bandwidth", path);
  link.latency = not_negative(network, "latency", path);
  if (!network.contains("hops")) return link;
  for (const auto& hop : field<ordered_json::array_t>(network, "hops", path)) {
    plan::HopTime time{positive(hop, "sent_bytes", path), positive(hop, "seconds", path)};
    if (!link.timed.empty()) {
      const plan::HopTime& last = link.timed.back();
      if (time.sent_bytes <= last.sent_bytes) refuse(path, "has 'hops' whose bytes do not grow");
      time.seconds = std::max(time.seconds, last.seconds);
    }
    link.timed.push_back(time);
  }
  return link;
}

}  // namespace cli
