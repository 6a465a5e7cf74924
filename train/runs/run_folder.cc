#include "train/runs/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/file.h"
#include "scalecom/state/text_file.h"
#include "train/runs/json.h"
#include "train/runs/run_lock.h"

namespace train::runs {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;
using scalecom::state::read_text;
using scalecom::state::write_text;

constexpr std::size_t kCheckpointsKept = 2;
constexpr std::string_view kPrefix = "step-";
constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kSimilarity = "similarity.jsonl";
constexpr const char* kReferences = "references.txt";
constexpr const char* kHypotheses = "hypotheses.txt";

/// Whether nothing at all stands there. core::IoError where that cannot be told: what a disk does
/// not let be seen is not lost.
bool is_missing(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return true;
  if (!error) return false;
  throw core::IoError(
      core::concat("[run] ", path.string(), " cannot be looked at: ", error.message()));
}

/// The lines of a file of JSON objects that have a step, up to one that was cut short.
std::vector<nlohmann::ordered_json> read_lines(const fs::path& path) {
  std::vector<nlohmann::ordered_json> lines;
  if (is_missing(path)) return lines;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) {
    auto json = parse_json(line);
    if (!json || !json->is_object() || !json->contains("step")) break;
    if (!is_whole_number((*json)["step"], 0, kMostSteps)) break;
    lines.push_back(*std::move(json));
  }
  return lines;
}

void append_line(const fs::path& path, const nlohmann::ordered_json& line) {
  const std::string text = line.dump() + "\n";
  scalecom::state::append(path, std::as_bytes(std::span(text)));
}

void keep_lines_to(std::int64_t step, const fs::path& path) {
  std::ostringstream kept;
  for (const auto& line : read_lines(path)) {
    if (line["step"].get<std::int64_t>() <= step) kept << line.dump() << '\n';
  }
  write_text(path, kept.str());
}

/// Where a learner puts its share of a file.
fs::path share_of(const fs::path& path, int learner) {
  return path.string() + core::concat(".", learner);
}

/// Why a folder with something in it cannot become this run's.
std::string occupied(const fs::path& path, const Config& wanted) {
  const std::string name = path.string();
  if (!fs::exists(path / "config.json")) {
    return core::concat("[train] ", name, " is not empty; choose another --out");
  }
  const RunFolder present = RunFolder::open(path);
  if (to_json(present.config()) != to_json(wanted)) {
    return core::concat("[train] ", name, " holds another run ('", present.config().method,
                        "', seed ", present.config().seed, "); choose another --out");
  }
  if (present.is_complete()) {
    return core::concat("[train] ", name, " holds this run already, and it is complete: see ",
                        "'scalecom inspect ", name, "', or choose another --out");
  }
  return core::concat("[train] ", name, " holds this run already, unfinished; go on with '",
                      "scalecom train --resume ", name, "'");
}

/// The step of a checkpoint's folder, by its name.
std::optional<std::int64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  std::int64_t step = 0;
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc() || rest != end) return std::nullopt;
  return step;
}

}  // namespace

RunFolder::RunFolder(fs::path path, Config config)
    : path_(std::move(path)), config_(std::move(config)) {}

void RunFolder::check_free(const fs::path& path, const Config& config) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  if (!fs::is_directory(path)) {
    throw core::UsageError(
        core::concat("[train] ", path.string(), " is a file; choose another --out"));
  }
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().filename() != RunLock::kFile) throw core::UsageError(occupied(path, config));
  }
}

RunFolder RunFolder::create(const fs::path& path, const Config& config) {
  check_free(path, config);
  try {
    // The configuration first: from then on a run that is killed can be resumed.
    fs::create_directories(path);
    write_json(path / "config.json", to_json(config));
    fs::create_directories(path / "checkpoints");
  } catch (const fs::filesystem_error& failure) {
    throw core::UsageError(core::concat("[train] ", path.string(), " cannot be written: ",
                                        failure.code().message(), "; choose another --out"));
  } catch (const core::IoError& failure) {
    throw core::UsageError(core::concat(failure.what(), "; choose another --out"));
  }
  return {path, config};
}

RunFolder RunFolder::open(const fs::path& path) {
  const fs::path file = path / "config.json";
  if (!fs::is_regular_file(file)) {
    throw core::UsageError(core::concat(
        "[run] ", path.string(), " holds no run: it has no config.json; a run is the folder ",
        "that --out named"));
  }
  const auto json = read_json(file);
  try {
    return {path, config_from_json(json)};
  } catch (const core::UsageError& error) {
    throw core::UsageError(core::concat("[run] ", file.string(), " is damaged: ", error.what()));
  }
}

void RunFolder::change(const Config& config) {
  if (to_json(config) == to_json(config_)) return;
  write_json(path_ / "config.json", to_json(config));
  config_ = config;
}

bool RunFolder::is_complete() const {
  return fs::exists(path_ / "result.json");
}

nlohmann::ordered_json RunFolder::result() const {
  const fs::path file = path_ / "result.json";
  auto result = read_json(file);
  const auto is_as_written = [&] {
    if (!result.is_object()) return false;
    for (const char* const key :
         {"steps", "seconds", "bytes_per_rank_step", "effective_rate", "whole_run_rate"}) {
      if (!result.contains(key)) return false;
    }
    for (const char* const key : {"group", "device_peak_bytes"}) {
      if (result.contains(key) && !number(result, key)) return false;
    }
    if (result.contains("inside_bytes_per_rank_step") != result.contains("group")) return false;
    return number(result, "value") && number(result, "peak_bytes") && number(result, "learners") &&
           result.contains("metric") && result["metric"].is_string() && result.contains("method") &&
           result["method"].is_string();
  };
  if (is_as_written()) return result;
  throw core::UsageError(core::concat("[run] ", file.string(),
                                      " is damaged: it is no result; remove it and resume, to "
                                      "have it written again"));
}

void RunFolder::write_result(const nlohmann::ordered_json& result) {
  write_json(path_ / "result.json", result);
}

void RunFolder::write_transcripts(int learner, std::span<const tasks::Transcript> transcripts) {
  std::string references;
  std::string hypotheses;
  for (const tasks::Transcript& transcript : transcripts) {
    references += transcript.reference + "\n";
    hypotheses += transcript.hypothesis + "\n";
  }
  write_text(share_of(path_ / kReferences, learner), references);
  write_text(share_of(path_ / kHypotheses, learner), hypotheses);
}

void RunFolder::join_transcripts(int learners) {
  for (const char* name : {kReferences, kHypotheses}) {
    std::string all;
    for (int learner = 0; learner < learners; ++learner) {
      all += read_text(share_of(path_ / name, learner));
    }
    write_text(path_ / name, all);
    for (int learner = 0; learner < learners; ++learner) {
      fs::remove(share_of(path_ / name, learner));
    }
  }
}

std::vector<nlohmann::ordered_json> RunFolder::metrics() const {
  return read_lines(path_ / kMetrics);
}

std::vector<nlohmann::ordered_json> RunFolder::similarity() const {
  return read_lines(path_ / kSimilarity);
}

void RunFolder::append(const nlohmann::ordered_json& line) {
  append_line(path_ / kMetrics, line);
}

void RunFolder::append_similarity(const nlohmann::ordered_json& line) {
  append_line(path_ / kSimilarity, line);
}

void RunFolder::forget_lines_after(std::int64_t step) {
  keep_lines_to(step, path_ / kMetrics);
  if (fs::exists(path_ / kSimilarity)) keep_lines_to(step, path_ / kSimilarity);
}

std::vector<RunFolder::Checkpoint> RunFolder::checkpoints() const {
  std::vector<Checkpoint> found;
  const fs::path folder = path_ / "checkpoints";
  if (is_missing(folder)) return found;
  try {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (const auto step = step_of(entry.path())) found.push_back({*step, entry.path()});
    }
  } catch (const fs::filesystem_error& error) {
    throw core::IoError(
        core::concat("[run] ", folder.string(), " cannot be read: ", error.code().message()));
  }
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.step < b.step; });
  return found;
}

std::optional<RunFolder::Checkpoint> RunFolder::last_checkpoint() const {
  auto all = checkpoints();
  if (all.empty()) return std::nullopt;
  return all.back();
}

fs::path RunFolder::unfinished_checkpoint() const {
  return path_ / "checkpoints" / "unfinished";
}

void RunFolder::clear_unfinished_checkpoint() {
  std::error_code error;
  fs::remove_all(unfinished_checkpoint(), error);
  if (!error) fs::create_directories(unfinished_checkpoint(), error);
  if (error) {
    throw core::IoError(core::concat("[run] ", unfinished_checkpoint().string(),
                                     " cannot be written: ", error.message()));
  }
}

void RunFolder::finish_checkpoint(std::int64_t step) {
  const fs::path name = path_ / "checkpoints" / fmt::format("{}{:09}", kPrefix, step);
  std::error_code error;
  fs::remove_all(name, error);
  fs::rename(unfinished_checkpoint(), name, error);
  if (error) {
    throw core::IoError(
        core::concat("[run] ", name.string(), " cannot be written: ", error.message()));
  }
  auto all = checkpoints();
  for (std::size_t i = 0; i + kCheckpointsKept < all.size(); ++i)
    fs::remove_all(all[i].path, error);
}

void RunFolder::forget_checkpoints() {
  std::error_code error;
  for (const Checkpoint& checkpoint : checkpoints()) fs::remove_all(checkpoint.path, error);
}

}  // namespace train::runs
