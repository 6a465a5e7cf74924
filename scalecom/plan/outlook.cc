#include "scalecom/plan/outlook.h"

#include <cmath>
#include <limits>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/plan/candidate.h"
#include "scalecom/plan/units.h"

namespace scalecom::plan {
namespace {

using core::concat;

// The bandwidth at which a method and dense take the same time: with less the method is faster.
double break_even(const Candidate& dense, const Candidate& method) {
  constexpr double kSlowest = 1e2;
  constexpr double kFastest = 1e15;
  constexpr int kHalvings = 60;
  const auto pays = [&](double bandwidth) {
    return method.time(bandwidth).step < dense.time(bandwidth).step;
  };
  double low = std::log(kSlowest);
  double high = std::log(kFastest);
  if (!pays(kSlowest)) return 0;
  if (pays(kFastest)) return std::numeric_limits<double>::infinity();
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (pays(std::exp(middle)) ? low : high) = middle;
  }
  return std::exp(low);
}

std::string note_on(const Candidate& candidate, const Kernels& kernels) {
  std::vector<std::string> notes;
  if (!candidate.measured()) {
    notes.push_back(concat("its kernels were not measured on ", kernels.device(),
                           ": compressing counts as nothing"));
  }
  if (candidate.spec().starts_with("adacomp")) {
    notes.emplace_back("what it sends depends on the gradient: this is the least");
  }
  return core::join(notes, "; ");
}

// Of a model that begins with a large embedding, that is most of what remains.
std::string hint_on(const Candidate& candidate, const Candidate& dense) {
  const double first = candidate.dense_first_layer();
  if (first * dense.sent_between() <= candidate.sent_between() / 2) return "";
  return concat("its first layer, ", std::round(100 * first),
                " % of the parameters, travels dense and is most of what it sends; with "
                "first=compressed it would not");
}

// From where on a method that is faster here is not.
std::string limit_of(const Outcome& outcome) {
  if (!std::isfinite(outcome.pays_below)) return "it pays at any bandwidth";
  if (outcome.pays_below > 0) {
    return concat("it pays below ", bandwidth_text(outcome.pays_below), " between nodes");
  }
  return "it has fewer hops than dense and more bytes, and does not pay at low bandwidths";
}

void check_link(const Link& link, const char* which) {
  if (!(link.bandwidth > 0) || !std::isfinite(link.bandwidth)) {
    throw core::UsageError(concat("[plan] the bandwidth ", which, " is ", link.bandwidth,
                                  "; it is over 0 bytes a second"));
  }
  if (!(link.latency >= 0) || !std::isfinite(link.latency)) {
    throw core::UsageError(
        concat("[plan] the latency ", which, " is ", link.latency, "; it is 0 seconds or more"));
  }
  HopTime last{-1, 0};
  for (const HopTime& hop : link.timed) {
    if (!(hop.sent_bytes > last.sent_bytes) || !(hop.seconds >= last.seconds)) {
      throw core::UsageError(
          concat("[plan] the hops ", which, " were timed with bytes or seconds that fall"));
    }
    last = hop;
  }
}

// A step that planning can say something of.
StepTime step_of(const Candidate& candidate) {
  const StepTime time = candidate.time();
  if (!(time.step > 0) || !std::isfinite(time.step)) {
    throw core::UsageError(concat("[plan] a step of ", candidate.spec(), " takes ", time.step,
                                  " s: some figure is too large or too small to plan with"));
  }
  return time;
}

}  // namespace

void check(const Setting& setting) {
  const Network& network = setting.network;
  const auto refuse = [](const auto&... parts) {
    throw core::UsageError(concat("[plan] ", parts...));
  };
  constexpr int kMostWorkers = 1 << 20;
  if (network.workers < 1 || network.workers > kMostWorkers) {
    refuse(network.workers, " workers; there are 1 to ", kMostWorkers);
  }
  if (network.per_node < 1 || network.workers % network.per_node != 0) {
    refuse(network.workers, " workers do not divide into groups of ", network.per_node);
  }
  if (setting.batch < 1) refuse("a batch of ", setting.batch, "; it is 1 sample or more");
  check_link(network.between, "between nodes");
  if (network.per_node > 1) check_link(network.inside, "inside nodes");
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  if (!setting.model.measured() && setting.step_seconds == 0 && !positive(setting.flops)) {
    refuse("the accelerator's throughput is ", setting.flops, "; it is over 0");
  }
  if (setting.step_seconds < 0 || !std::isfinite(setting.step_seconds)) {
    refuse("a step of ", setting.step_seconds, " s; it is over 0");
  }
  if (!positive(setting.bucket_bytes)) refuse("buckets of ", setting.bucket_bytes, " bytes");
  if (!(setting.deviation >= 0) || setting.deviation > 10) {
    refuse("a deviation of ", setting.deviation, "; it is 0 to 10");
  }
}

std::vector<Outcome> look_ahead(const Setting& setting, const std::vector<std::string>& methods) {
  check(setting);
  const Candidate dense(setting, "dense");
  const double dense_step = step_of(dense).step;
  std::vector<Outcome> outcomes;
  for (const std::string& spec : methods) {
    const Candidate candidate(setting, spec);
    Outcome outcome;
    outcome.method = spec;
    outcome.time = step_of(candidate);
    outcome.measured = candidate.measured();
    outcome.moved = candidate.moved();
    outcome.sent_between = candidate.sent_between();
    if (outcome.sent_between > 0) {
      outcome.effective_rate = dense.sent_between() / outcome.sent_between;
    }
    outcome.speedup = dense_step / outcome.time.step;
    outcome.pays_below = candidate.spec() == dense.spec() ? 0 : break_even(dense, candidate);
    outcome.note = note_on(candidate, setting.kernels);
    outcome.hint = hint_on(candidate, dense);
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

std::string advise(const std::vector<Outcome>& outcomes) {
  // What is not worth a change, and by how much a later one, which gives up more, has to be better.
  constexpr double kWorthwhile = 1.05;
  constexpr double kBetter = 1.02;
  const Outcome* best = nullptr;
  for (const Outcome& outcome : outcomes) {
    if (!outcome.note.empty()) continue;
    if (best == nullptr || outcome.speedup > kBetter * best->speedup ||
        (best->speedup < kWorthwhile && outcome.speedup >= kWorthwhile)) {
      best = &outcome;
    }
  }
  if (best == nullptr) return "No method here has kernels that were measured on this device.";
  const auto rounded = [](double value, double unit) { return std::round(value / unit) * unit; };
  if (best->speedup < kWorthwhile) {
    double below = 0;
    for (const Outcome& outcome : outcomes) {
      if (outcome.note.empty() && std::isfinite(outcome.pays_below)) {
        below = std::max(below, outcome.pays_below);
      }
    }
    return concat("Stay with dense: no method makes the step over 5 % shorter",
                  below > 0 ? concat("; compression begins to pay below ", bandwidth_text(below))
                            : std::string(),
                  ".");
  }
  return concat("Use ", best->method, ": a step of ", rounded(best->time.step * 1e3, 0.01), " ms, ",
                rounded(best->speedup, 0.01), " times as fast as dense; ", limit_of(*best), ".");
}

}  // namespace scalecom::plan
