#include "cli/scores.h"

#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "train/runs/json.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX has it in no header

namespace cli {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// What a score.json says of two runs; nothing where it says nothing that can be used.
std::optional<Score::Paired> read_paired(const ordered_json& paired) {
  if (!paired.is_object()) return std::nullopt;
  const ordered_json against = paired.value("against", ordered_json());
  const ordered_json interval = paired.value("interval_95", ordered_json());
  if (!against.is_string() || !interval.is_array() || interval.size() != 2) return std::nullopt;
  if (!interval.at(0).is_number() || !interval.at(1).is_number()) return std::nullopt;
  return Score::Paired{against.get<std::string>(),
                       train::runs::number(paired, "difference"),
                       {interval.at(0).get<double>(), interval.at(1).get<double>()}};
}

/// Whether the baseline still has the score that a run's was compared with: it may have been run
/// again since.
bool is_of_this(const Score& scored, const fs::path& baseline) {
  constexpr double kRounding = 1e-6;
  const std::optional<Score> before = read_score(baseline);
  if (!before) return true;
  if (!scored.paired->difference) return false;
  return std::abs(scored.value - before->value - *scored.paired->difference) < kRounding;
}

}  // namespace

void score(const fs::path& run, const std::optional<fs::path>& baseline,
           const std::string& program) {
  std::vector<std::string> words{program, run.string()};
  if (baseline) {
    words.emplace_back("--against");
    words.push_back(baseline->string());
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  std::fflush(stdout);
  int status = posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ);
  if (status == 0) {
    while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
    }
  }
  if (status == 0) return;
  throw core::UsageError(core::concat("[reproduce] --score ", core::join(words, " "),
                                      " failed: see that it can be run by hand"));
}

std::optional<Score> read_score(const fs::path& run) {
  const fs::path file = run / "score.json";
  if (!fs::exists(file)) return std::nullopt;
  const ordered_json json = train::runs::read_json(file);
  const auto value = json.is_object() ? train::runs::number(json, "value") : std::nullopt;
  if (!value || !json.contains("metric") || !json["metric"].is_string()) {
    throw core::UsageError(core::concat("[reproduce] ", file.string(),
                                        " is damaged: it is no score; remove it, and score the "
                                        "run again"));
  }
  return Score{*value, json["metric"].get<std::string>(),
               read_paired(json.value("paired", ordered_json()))};
}

bool is_scored(const fs::path& run, const std::optional<fs::path>& baseline) {
  try {
    const std::optional<Score> scored = read_score(run);
    return scored && (!baseline || paired_interval(*scored, *baseline));
  } catch (const core::UsageError&) {
    return false;
  }
}

std::optional<train::recipes::Interval> paired_interval(const Score& scored,
                                                        const fs::path& baseline) {
  if (!scored.paired) return std::nullopt;
  // By its place in OUT, which may have been moved since, or be called by another name.
  const auto place = [](const fs::path& run) {
    return run.parent_path().filename() / run.filename();
  };
  if (place(scored.paired->against) != place(baseline)) return std::nullopt;
  if (!is_of_this(scored, baseline)) return std::nullopt;
  return scored.paired->interval;
}

}  // namespace cli
