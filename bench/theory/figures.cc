// Writes what docs/theory.md shows: theory_figures FOLDER. bench/theory.py draws it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/theory/descent.h"
#include "bench/theory/settings.h"
#include "bench/theory/workers.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace bench::theory {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::uint64_t kLemmaSeeds = 3;
constexpr std::uint64_t kDescentSeeds = 2;
constexpr int kLongWorkers = 8;  // of descents of more steps

/// Rows that all have the same keys, a line each, with the keys said once.
void write(const fs::path& path, const ordered_json& head, const ordered_json& rows) {
  std::ofstream file(path);
  file << "{\n";
  for (const auto& [key, value] : head.items()) {
    file << ordered_json(key).dump() << ": " << value.dump() << ",\n";
  }
  ordered_json columns = ordered_json::array();
  for (const auto& [key, value] : rows.front().items()) columns.push_back(key);
  file << "\"columns\": " << columns.dump() << ",\n\"rows\": [";
  const char* between = "\n";
  for (const auto& row : rows) {
    ordered_json values = ordered_json::array();
    for (const auto& [key, value] : row.items()) values.push_back(value);
    file << between << values.dump();
    between = ",\n";
  }
  file << "\n]}\n";
  if (!file.flush()) {
    throw scalecom::core::IoError(
        scalecom::core::concat("[theory] ", path.string(), " cannot be written"));
  }
  std::printf("%s\n", path.c_str());
}

/// Four digits after the point, which is more than seeds agree in.
double rounded(double x) {
  return std::round(x * 1e4) / 1e4;
}

ordered_json lemma1() {
  ordered_json rows = ordered_json::array();
  for (const Distribution distribution : kDistributions) {
    for (const char* select : {"chunk", "exact"}) {
      for (const int workers : {2, 4, 8, 16, 32}) {
        for (const double correlation : {0.0, 0.3, 0.6, 0.9}) {
          for (std::uint64_t seed = 0; seed < kLemmaSeeds; ++seed) {
            const auto steps = steps_by_leader(
                draw({distribution, workers, kElements, correlation, seed}), kRate, select);
            const auto over = std::count_if(steps.begin(), steps.end(), [](const Step& step) {
              return step.of_mean.measured > step.of_mean.bound();
            });
            const Step all = mean(steps);
            rows.push_back({{"distribution", to_string(distribution)},
                            {"select", select},
                            {"workers", workers},
                            {"correlation", correlation},
                            {"seed", seed},
                            {"hamming", rounded(all.of_mean.hamming)},
                            {"contraction", rounded(all.of_mean.measured)},
                            {"contraction_exact", rounded(all.of_mean.exact)},
                            {"lemma1_bound", rounded(all.of_mean.bound())},
                            {"steps_over", over}});
          }
        }
      }
    }
  }
  return rows;
}

ordered_json lemma2() {
  ordered_json rows = ordered_json::array();
  for (const int workers : {2, 4, 16, 64}) {
    for (const double correlation : kCorrelations) {
      Step sum;
      double bound = 0;
      const double share = 1.0 / kLemmaSeeds;
      for (std::uint64_t seed = 0; seed < kLemmaSeeds; ++seed) {
        const Vectors vectors =
            draw({Distribution::kNormal, workers, kElements, correlation, seed});
        const Step step = mean(steps_by_leader(vectors, kRate, "chunk"));
        sum.of_mean.hamming += share * step.of_mean.hamming;
        sum.of_mean.measured += share * step.of_mean.measured;
        sum.of_mean.exact += share * step.of_mean.exact;
        sum.of_workers += share * step.of_workers;
        bound += share * lemma2_bound(step.of_workers, correlation_of(vectors), workers);
      }
      rows.push_back({{"workers", workers},
                      {"correlation", correlation},
                      {"hamming", rounded(sum.of_mean.hamming)},
                      {"contraction", rounded(sum.of_mean.measured)},
                      {"contraction_exact", rounded(sum.of_mean.exact)},
                      {"contraction_of_workers", rounded(sum.of_workers)},
                      {"lemma2_bound", rounded(bound)}});
    }
  }
  return rows;
}

constexpr const char* kMethods[] = {"dense", "scalecom,beta=1", "scalecom,beta=0.1"};

ordered_json descents() {
  ordered_json rows = ordered_json::array();
  for (const Setting& setting : {kConvex, kNotConvex}) {
    const auto problem = setting.make();
    const auto add = [&](int workers, std::int64_t steps, std::uint64_t seed) {
      ordered_json row{
          {"problem", setting.name}, {"workers", workers}, {"steps", steps}, {"seed", seed}};
      for (const char* method : kMethods) {
        row[method] = mean_squared_gradient(
            *problem, descent_of(setting, method, workers, seed, steps), kLooks);
      }
      rows.push_back(row);
    };
    for (const int workers : kWorkers) {
      for (std::uint64_t seed = 0; seed < kDescentSeeds; ++seed) add(workers, kSteps, seed);
    }
    for (const std::int64_t steps : {4 * kSteps, 16 * kSteps}) add(kLongWorkers, steps, 0);
  }
  return rows;
}

}  // namespace

void write_all(const fs::path& folder) {
  fs::create_directories(folder);
  const ordered_json vectors{{"elements", kElements}, {"rate", kRate}};
  write(folder / "lemma1.json", vectors, lemma1());
  write(folder / "lemma2.json", vectors, lemma2());
  write(folder / "descent.json", {{"rate", kRate}}, descents());
}

}  // namespace bench::theory

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: theory_figures FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  try {
    bench::theory::write_all(folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "theory_figures: %s\n", error.what());
    return 1;
  }
  return 0;
}
