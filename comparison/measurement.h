#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "comparison/plan.h"
#include "comparison/probe.h"

namespace comparison {

/// All that is measured of a method besides training, as its file has it; nothing where `stops`
/// said so before it was done. `progress(done)` is of measurement_work(), in samples.
std::optional<nlohmann::ordered_json> measure(const Plan& plan, Probe& probe,
                                              const Entrant& entrant,
                                              const std::function<bool()>& stops,
                                              const std::function<void(std::int64_t)>& progress);

std::int64_t measurement_work(std::int64_t batch);

}  // namespace comparison
