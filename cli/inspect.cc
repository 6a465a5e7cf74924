#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/table.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/safetensors.h"
#include "train/runs/run_folder.h"
#include "train/similarity/saved.h"

namespace cli {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kFooter = R"(
PATH is a run's folder, one of its checkpoints, a folder of memories, or a .safetensors file.

Example:
  scalecom inspect runs/a
  scalecom inspect runs/a/checkpoints/step-000000469/memories --json -)";

// A matrix of more ranks does not fit a terminal; the JSON object has all of it.
constexpr int kMostRanksShown = 10;

struct Options {
  fs::path path;
  JsonOutput json;
};

ordered_json to_json(const train::similarity::Similarity& memory) {
  ordered_json tensors = ordered_json::array();
  for (const auto& tensor : memory.tensors) {
    tensors.push_back(
        {{"name", tensor.name}, {"elements", tensor.elements}, {"norms", tensor.norms}});
  }
  return {{"method", memory.method},
          {"step", memory.step},
          {"ranks", memory.ranks},
          {"norms", memory.norms},
          {"mean_cosine_distance", memory.mean_distance()},
          {"cosine", memory.cosine},
          {"tensors", tensors}};
}

void print_memory(const ordered_json& memory) {
  fmt::print("\nmemory of '{}' after {} steps, {} ranks\n", memory["method"].get<std::string>(),
             memory["step"].get<std::int64_t>(), memory["ranks"].get<int>());
  if (memory["tensors"].empty()) {
    fmt::print("it is empty: this method keeps none, or has not compressed anything yet\n");
    return;
  }
  std::vector<std::vector<std::string>> rows{{"tensor", "elements", "mean norm"}};
  for (const auto& tensor : memory["tensors"]) {
    double norm = 0;
    for (const auto& one : tensor["norms"]) norm += one.get<double>() / memory["ranks"].get<int>();
    rows.push_back({tensor["name"], tensor["elements"].dump(), fmt::format("{:.4g}", norm)});
  }
  fmt::print("{}", table(rows));
  const int ranks = memory["ranks"];
  if (ranks < 2) return;
  fmt::print("\nmean cosine distance between ranks: {:.4f}\n",
             memory["mean_cosine_distance"].get<double>());
  if (ranks > kMostRanksShown) return;
  rows = {{"cosine"}};
  for (int rank = 0; rank < ranks; ++rank) rows[0].push_back(fmt::format("rank {}", rank));
  for (int rank = 0; rank < ranks; ++rank) {
    rows.push_back({fmt::format("rank {}", rank)});
    for (const auto& value : memory["cosine"][static_cast<std::size_t>(rank)]) {
      rows.back().push_back(fmt::format("{:.4f}", value.get<double>()));
    }
  }
  fmt::print("{}", table(rows));
}

ordered_json inspect_run(const fs::path& path) {
  const auto run = train::runs::RunFolder::open(path);
  const auto metrics = run.metrics();
  const auto last = run.last_checkpoint();
  ordered_json checkpoints = ordered_json::array();
  for (const auto& checkpoint : run.checkpoints()) checkpoints.push_back(checkpoint.step);
  return {{"kind", "run"},
          {"path", path.string()},
          {"config", train::runs::to_json(run.config())},
          {"complete", run.is_complete()},
          {"metrics", metrics.empty() ? ordered_json() : metrics.back()},
          {"checkpoints", checkpoints},
          {"memory", last ? to_json(train::similarity::measure(last->path / "memories")) : nullptr},
          {"result", run.is_complete() ? run.result() : ordered_json()}};
}

void print_run(const ordered_json& run) {
  std::vector<std::pair<std::string, std::string>> lines;
  const auto add = [&](const std::string& name, const ordered_json& value) {
    if (value.is_null() || value == "") return;
    lines.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  };
  for (const auto& [key, value] : run["config"].items()) add(key, value);
  add("complete", run["complete"] ? "yes" : "no");
  std::vector<std::string> checkpoints;
  for (const auto& step : run["checkpoints"]) checkpoints.push_back(step.dump());
  add("checkpoints at steps", checkpoints.empty() ? "none" : core::join(checkpoints));
  if (run["metrics"].is_object()) {
    for (const auto& [key, value] : run["metrics"].items()) add("last " + key, value);
  }
  if (run["result"].is_object())
    add("effective_rate", run["result"].value("effective_rate", ordered_json()));
  fmt::print("{}", facts(lines));
  if (run["memory"].is_object()) print_memory(run["memory"]);
}

ordered_json inspect_tensors(const fs::path& path) {
  const scalecom::state::SafetensorsReader file(path);
  ordered_json tensors = ordered_json::array();
  for (const auto& tensor : file.tensors()) {
    ordered_json norm;
    if (tensor.dtype == "F32") {
      std::vector<float> values(static_cast<std::size_t>(tensor.elements));
      file.read(tensor.name, values);
      double squares = 0;
      for (const float value : values) squares += static_cast<double>(value) * value;
      norm = std::sqrt(squares);
    }
    tensors.push_back(
        {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"norm", norm}});
  }
  return {{"kind", "tensors"},
          {"path", path.string()},
          {"metadata", file.metadata()},
          {"tensors", tensors}};
}

void print_tensors(const ordered_json& file) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const char* key : {"method", "step", "rank", "world"}) {
    if (!file["metadata"].contains(key)) continue;
    lines.emplace_back(key, file["metadata"][key].get<std::string>());
  }
  fmt::print("{}{}", facts(lines), lines.empty() ? "" : "\n");
  std::vector<std::vector<std::string>> rows{{"tensor", "type", "shape", "norm"}};
  for (const auto& tensor : file["tensors"]) {
    rows.push_back(
        {tensor["name"], tensor["dtype"], tensor["shape"].dump(),
         tensor["norm"].is_null() ? "-" : fmt::format("{:.4g}", tensor["norm"].get<double>())});
  }
  fmt::print("{}", table(rows));
}

ordered_json inspect_memory(const fs::path& path) {
  ordered_json object = to_json(train::similarity::measure(path));
  object["kind"] = "memory";
  object["path"] = path.string();
  return object;
}

ordered_json inspect(const fs::path& path) {
  if (fs::is_regular_file(path)) return inspect_tensors(path);
  if (!fs::is_directory(path)) {
    throw core::UsageError(core::concat("[inspect] ", path.string(),
                                        " does not exist; give a run's folder or a memory file"));
  }
  if (fs::exists(path / "config.json")) return inspect_run(path);
  try {
    return inspect_memory(fs::exists(path / "memories") ? path / "memories" : path);
  } catch (const core::UsageError& error) {
    throw core::UsageError(
        core::concat(error.what(), "; give a run's folder, a checkpoint's or a memory file"));
  }
}

int run(const Options& options) {
  options.json.check();
  const ordered_json object = inspect(options.path);
  options.json.write(object);
  if (options.json.takes_stdout()) return 0;
  if (object["kind"] == "run") print_run(object);
  if (object["kind"] == "tensors") print_tensors(object);
  if (object["kind"] == "memory") print_memory(object);
  return 0;
}

}  // namespace

Command add_inspect(CLI::App& program) {
  CLI::App* const command = program.add_subcommand(
      "inspect", "Show what a run or a memory file holds, and how alike memories are");
  const auto options = std::make_shared<Options>();
  command->add_option("path", options->path, "What to look at")->required()->type_name("PATH");
  options->json.add_to(*command);
  command->footer(kFooter);
  return {command, [options] { return run(*options); }};
}

}  // namespace cli
