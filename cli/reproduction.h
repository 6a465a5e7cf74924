#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/recipes/recipe.h"

namespace cli {

/// A run of a row, kept in a folder of its own.
struct Run {
  const train::recipes::Recipe& recipe;
  std::int64_t seed;
  std::filesystem::path folder;

  bool is_complete() const { return std::filesystem::exists(folder / "result.json"); }
  bool is_begun() const { return std::filesystem::exists(folder / "config.json"); }
  bool has_text() const { return std::filesystem::exists(folder / "hypotheses.txt"); }
};

/// Which rows are reproduced, and where their runs are kept: OUT/ROW/seed-N.
class Reproduction {
 public:
  /// The rows that are named, or all recipes where none is, each after what it is compared with,
  /// and of each no more than `seeds` of its seeds. core::UsageError as recipes::find(), and for
  /// two recipes of one name.
  Reproduction(const std::vector<std::string>& names, const std::filesystem::path& out,
               std::optional<int> seeds);

  /// Its runs refer to its rows.
  Reproduction(const Reproduction&) = delete;
  Reproduction& operator=(const Reproduction&) = delete;

  const std::vector<train::recipes::Recipe>& rows() const { return rows_; }
  /// In the order of the rows and their seeds.
  const std::vector<Run>& runs() const { return runs_; }
  std::vector<Run> runs_of(const train::recipes::Recipe& row) const;
  /// The folder of the complete run that a run is compared with: its baseline's, of the same seed.
  std::optional<std::filesystem::path> baseline_of(const Run& run) const;
  /// core::UsageError where a run that is there was made by another version of its recipe, or of a
  /// file that was changed since: it is no run of this one.
  void check_origins() const;

 private:
  std::vector<train::recipes::Recipe> rows_;
  std::vector<Run> runs_;
};

}  // namespace cli
