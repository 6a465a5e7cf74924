#include "comparison/measurement.h"

#include <vector>

#include "comparison/growth.h"
#include "comparison/local_step.h"
#include "comparison/operations/statement.h"
#include "comparison/traffic.h"

namespace comparison {
namespace {

using nlohmann::ordered_json;

std::int64_t all_traffic_batches() {
  std::int64_t sum = 0;
  for (const int ranks : kWorlds) sum += traffic_batches(ranks);
  return sum;
}

std::optional<double> count_operations(Probe& probe, const std::string& spec) {
  std::vector<float> gradient(static_cast<std::size_t>(probe.elements()));
  probe.gradient(1, 0, 0, gradient);
  return operations::count(spec, probe.tensors(), gradient);
}

}  // namespace

// Timing takes about as long as the traffic does.
std::int64_t measurement_work(std::int64_t batch) {
  return 2 * batch * all_traffic_batches();
}

std::optional<ordered_json> measure(const Plan& plan, Probe& probe, const Entrant& entrant,
                                    const std::function<bool()>& stops,
                                    const std::function<void(std::int64_t)>& progress) {
  ordered_json traffic = ordered_json::array();
  std::vector<Busiest> busiest;
  std::int64_t batches = 0;
  for (const int ranks : kWorlds) {
    if (stops()) return std::nullopt;
    const Moved moved = measure_traffic(probe, entrant.spec, ranks);
    traffic.push_back({{"ranks", ranks},
                       {"bytes_per_rank_step", moved.bytes_per_rank_step},
                       {"max_rank_bytes", moved.max_rank_bytes}});
    busiest.push_back({ranks, static_cast<double>(moved.max_rank_bytes)});
    batches += traffic_batches(ranks);
    progress(probe.batch() * batches);
  }
  if (stops()) return std::nullopt;
  const LocalStep step =
      measure_local_step(probe, entrant.spec, plan.timed_elements, plan.timed_repeats);
  const auto operations = count_operations(probe, entrant.spec);
  progress(measurement_work(probe.batch()));
  return ordered_json{
      {"method", entrant.label},
      {"spec", entrant.spec},
      {"growth", to_string(fit_growth(busiest))},
      {"traffic", traffic},
      {"ops_per_element", operations ? ordered_json(*operations) : ordered_json(nullptr)},
      {"ns_per_element", step.ns_per_element},
      {"copy_ns_per_element", step.copy_ns_per_element},
      {"method_bytes_per_element",
       static_cast<double>(step.method_bytes) / static_cast<double>(step.elements)},
      {"timed_elements", step.elements}};
}

}  // namespace comparison
