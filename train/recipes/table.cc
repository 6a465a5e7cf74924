#include "train/recipes/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace train::recipes {
namespace {

using nlohmann::ordered_json;

// What an effective rate is of, and an interval over.
constexpr const char* kBetweenGroups = "between groups";
constexpr const char* kAllTraffic = "all traffic";
constexpr const char* kOverSeeds = "seeds";
constexpr const char* kOverSentences = "sentences";

/// Student's t for 95% on both sides, by degrees of freedom from 1 on; the last for all further.
/// scalecom/report/pairs.py has the same, for runs that no table was made of; a test compares them.
double student(int freedom) {
  constexpr std::array kValues{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                               2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                               2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  const auto index = static_cast<std::size_t>(freedom - 1);
  return index < kValues.size() ? kValues[index] : kValues.back();
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json interval_json(const std::optional<Interval>& interval) {
  return interval ? ordered_json::array({interval->low, interval->high}) : ordered_json(nullptr);
}

ordered_json difference_json(const Difference& paired) {
  ordered_json over = nullptr;
  if (paired.interval) over = paired.pairs > 1 ? kOverSeeds : kOverSentences;
  return {{"mean", paired.mean},
          {"pairs", paired.pairs},
          {"half_width_95", or_null(paired.half_width)},
          {"interval_95", interval_json(paired.interval)},
          {"interval_over", over}};
}

const Outcomes* find_row(const std::vector<Outcomes>& rows, const std::string& name) {
  for (const Outcomes& row : rows) {
    if (row.recipe.name == name) return &row;
  }
  return nullptr;
}

ordered_json row_json(const Outcomes& row, const Outcomes* baseline) {
  // Traffic is the same with every seed, or nearly so.
  const Outcome& first = row.runs.front();
  std::vector<double> values;
  ordered_json runs = ordered_json::array();
  for (const Outcome& run : row.runs) {
    values.push_back(run.value);
    runs.push_back({{"seed", run.seed}, {"value", run.value}});
  }
  ordered_json json{{"recipe", row.recipe.name},
                    {"version", row.recipe.version},
                    {"about", row.recipe.about},
                    {"task", row.recipe.request.task},
                    {"learners", row.recipe.request.learners},
                    {"method", row.recipe.request.method},
                    {"groups", or_null(row.recipe.request.groups)},
                    {"metric", row.metric},
                    {"mean", mean(values)},
                    {"runs", runs},
                    {"runs_wanted", row.recipe.seeds.size()},
                    {"effective_rate", or_null(first.effective_rate)},
                    {"effective_rate_of", first.between_groups ? kBetweenGroups : kAllTraffic},
                    {"inside_bytes_per_rank_step", or_null(first.inside_bytes_per_rank_step)},
                    {"baseline", nullptr},
                    {"difference", nullptr}};
  if (baseline == nullptr) return json;
  json["baseline"] = baseline->recipe.name;
  if (const auto paired = difference(row.runs, baseline->runs)) {
    json["difference"] = difference_json(*paired);
  }
  return json;
}

std::string difference_text(const ordered_json& difference) {
  if (difference.is_null()) return "-";
  const std::string mean = fmt::format("{:+.2f}", difference["mean"].get<double>());
  if (difference["interval_over"].is_null()) return mean;
  if (difference["interval_over"] == kOverSeeds) {
    return fmt::format("{} ± {:.2f}", mean, difference["half_width_95"].get<double>());
  }
  const ordered_json& interval = difference["interval_95"];
  return fmt::format("{} [{:+.2f}, {:+.2f}]", mean, interval[0].get<double>(),
                     interval[1].get<double>());
}

std::string rate_text(const ordered_json& row) {
  const ordered_json& rate = row["effective_rate"];
  if (rate.is_null()) return "-";
  std::string text = fmt::format("{:.1f}x", rate.get<double>());
  if (row["effective_rate_of"] == kBetweenGroups) text += fmt::format(" {}", kBetweenGroups);
  return text;
}

bool is_over_sentences(const ordered_json& row) {
  return !row["difference"].is_null() && row["difference"]["interval_over"] == kOverSentences;
}

bool is_of_errors(const ordered_json& row) {
  return row["metric"].get<std::string>().find("error") != std::string::npos;
}

}  // namespace

std::optional<Difference> difference(const std::vector<Outcome>& runs,
                                     const std::vector<Outcome>& baseline) {
  std::vector<double> values;
  std::optional<Interval> over_sentences;
  for (const Outcome& run : runs) {
    for (const Outcome& other : baseline) {
      if (run.seed != other.seed) continue;
      values.push_back(run.value - other.value);
      over_sentences = run.against_baseline;
    }
  }
  if (values.empty()) return std::nullopt;
  Difference result;
  result.mean = mean(values);
  result.pairs = static_cast<int>(values.size());
  if (result.pairs == 1) {
    result.interval = over_sentences;
    return result;
  }
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const double deviation = std::sqrt(squares / (result.pairs - 1));
  const double half_width = student(result.pairs - 1) * deviation / std::sqrt(result.pairs);
  result.half_width = half_width;
  result.interval = Interval{result.mean - half_width, result.mean + half_width};
  return result;
}

ordered_json table_json(const std::vector<Outcomes>& rows) {
  ordered_json table = ordered_json::array();
  for (const Outcomes& row : rows) {
    if (!row.runs.empty()) table.push_back(row_json(row, find_row(rows, row.recipe.baseline)));
  }
  return table;
}

std::string table_markdown(const ordered_json& table) {
  std::string text =
      "| recipe | learners | method | metric | value | runs | effective rate | less baseline, 95% "
      "|\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const ordered_json& row : table) {
    std::string method = row["method"];
    if (!row["groups"].is_null()) method += fmt::format(", groups of {}", row["groups"].get<int>());
    text += fmt::format("| {} | {} | `{}` | {} | {:.2f} | {} of {} | {} | {} |\n",
                        row["recipe"].get<std::string>(), row["learners"].get<int>(), method,
                        row["metric"].get<std::string>(), row["mean"].get<double>(),
                        row["runs"].size(), row["runs_wanted"].get<int>(), rate_text(row),
                        difference_text(row["difference"]));
  }
  if (std::any_of(table.begin(), table.end(), is_over_sentences)) {
    text +=
        "\nIn brackets: the 95% interval over the sentences of the test set, for one seed; what "
        "another seed would give is not in it.\n";
  }
  if (std::any_of(table.begin(), table.end(), is_of_errors)) {
    text += "\nOf error rates less is better: a difference with a minus is a gain.\n";
  }
  return text;
}

}  // namespace train::recipes
