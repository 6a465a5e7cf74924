#include "train/recipes/table.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace train::recipes {
namespace {

using nlohmann::ordered_json;

/// Student's t for 95% on both sides, by degrees of freedom from 1 on; the last for all further.
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

const Outcomes* find_row(const std::vector<Outcomes>& rows, const std::string& name) {
  for (const Outcomes& row : rows) {
    if (row.recipe.name == name) return &row;
  }
  return nullptr;
}

ordered_json row_json(const Outcomes& row, const Outcomes* baseline) {
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
                    {"effective_rate", or_null(row.runs.front().effective_rate)},
                    {"baseline", nullptr},
                    {"difference", nullptr}};
  if (baseline == nullptr) return json;
  json["baseline"] = baseline->recipe.name;
  if (const auto paired = difference(row.runs, baseline->runs)) {
    json["difference"] = {{"mean", paired->mean},
                          {"pairs", paired->pairs},
                          {"half_width_95", or_null(paired->half_width)}};
  }
  return json;
}

std::string difference_text(const ordered_json& difference) {
  if (difference.is_null()) return "-";
  const std::string mean = fmt::format("{:+.2f}", difference["mean"].get<double>());
  if (difference["half_width_95"].is_null()) return mean;
  return fmt::format("{} ± {:.2f}", mean, difference["half_width_95"].get<double>());
}

}  // namespace

std::optional<Difference> difference(const std::vector<Outcome>& runs,
                                     const std::vector<Outcome>& baseline) {
  std::vector<double> values;
  for (const Outcome& run : runs) {
    for (const Outcome& other : baseline) {
      if (run.seed == other.seed) values.push_back(run.value - other.value);
    }
  }
  if (values.empty()) return std::nullopt;
  Difference result{mean(values), static_cast<int>(values.size()), std::nullopt};
  if (result.pairs < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const double deviation = std::sqrt(squares / (result.pairs - 1));
  result.half_width = student(result.pairs - 1) * deviation / std::sqrt(result.pairs);
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
    const ordered_json& rate = row["effective_rate"];
    text += fmt::format("| {} | {} | `{}` | {} | {:.2f} | {} of {} | {} | {} |\n",
                        row["recipe"].get<std::string>(), row["learners"].get<int>(), method,
                        row["metric"].get<std::string>(), row["mean"].get<double>(),
                        row["runs"].size(), row["runs_wanted"].get<int>(),
                        rate.is_null() ? "-" : fmt::format("{:.1f}x", rate.get<double>()),
                        difference_text(row["difference"]));
  }
  return text;
}

}  // namespace train::recipes
