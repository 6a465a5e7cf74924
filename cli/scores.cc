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
#include "train/json.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX has it in no header

namespace cli {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// Whether the baseline still has the score that a run's was compared with: it may have been run
/// again since.
bool is_of_this(const ordered_json& scored, const fs::path& baseline) {
  constexpr double kRounding = 1e-6;
  const fs::path file = baseline / "score.json";
  if (!fs::exists(file)) return true;
  const auto before = train::number(train::read_json(file), "value");
  const auto after = train::number(scored, "value");
  const auto difference = train::number(scored.at("paired"), "difference");
  if (!before || !after || !difference) return false;
  return std::abs(*after - *before - *difference) < kRounding;
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

bool is_scored(const fs::path& run, const std::optional<fs::path>& baseline) {
  const fs::path file = run / "score.json";
  if (!fs::exists(file)) return false;
  return !baseline || paired_interval(train::read_json(file), *baseline).has_value();
}

std::optional<train::recipes::Interval> paired_interval(const ordered_json& scored,
                                                        const fs::path& baseline) {
  const auto paired = scored.find("paired");
  if (paired == scored.end() || !paired->is_object()) return std::nullopt;
  // By its place in OUT, which may have been moved since, or be called by another name.
  const auto place = [](const fs::path& run) {
    return run.parent_path().filename() / run.filename();
  };
  const ordered_json against = paired->value("against", ordered_json());
  const ordered_json interval = paired->value("interval_95", ordered_json());
  if (!against.is_string() || place(against.get<std::string>()) != place(baseline)) {
    return std::nullopt;
  }
  if (!interval.is_array() || interval.size() != 2) return std::nullopt;
  if (!interval.at(0).is_number() || !interval.at(1).is_number()) return std::nullopt;
  if (!is_of_this(scored, baseline)) return std::nullopt;
  return train::recipes::Interval{interval.at(0).get<double>(), interval.at(1).get<double>()};
}

}  // namespace cli
