#include "scalecom/plan/candidate.h"

#include <algorithm>
#include <set>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/layout/rates.h"
#include "scalecom/plan/buckets.h"
#include "scalecom/plan/stragglers.h"

namespace scalecom::plan {
namespace {

using core::concat;

// A step long after any warm-up, in which the first rank leads.
std::int64_t steady_step(int workers) {
  constexpr std::int64_t kLate = 1'000'000'000;
  return kLate / workers * workers;
}

// Shares differ by one element at most, and whoever leads or is a tree's root is the first: one of
// these is the busiest.
std::set<int> telling_ranks(const Network& network) {
  const int workers = network.workers;
  return {0, std::min(1, workers - 1), std::min(network.per_node, workers - 1), workers - 1};
}

void take_larger(comm::Counters& most, const comm::Counters& other) {
  for (std::size_t i = 0; i < most.by_call.size(); ++i) {
    comm::Traffic& mine = most.by_call[i];
    const comm::Traffic& theirs = other.by_call[i];
    mine = {std::max(mine.sent, theirs.sent), std::max(mine.received, theirs.received),
            std::max(mine.calls, theirs.calls)};
  }
}

methods::LevelTraffic busiest(const methods::Method& method, const layout::Layout& layout,
                              const Network& network) {
  methods::LevelTraffic most;
  for (const int rank : telling_ranks(network)) {
    const methods::LevelTraffic one =
        method.level_cost(layout, network.workers, rank, steady_step(network.workers));
    take_larger(most.inside, one.inside);
    take_larger(most.between, one.between);
  }
  return most;
}

StepParts computing(const Setting& setting) {
  const Model& model = setting.model;
  const auto batch = static_cast<double>(setting.batch);
  StepParts parts;
  parts.overlaps = setting.overlaps;
  double slower = slowest_of(setting.network.workers, setting.deviation);
  // The backward pass computes the gradients of weights and of inputs: twice the forward pass.
  double forward = 0;
  std::vector<double> backward;
  for (const Layer& layer : model.layers) {
    const double part = model.measured() ? layer.forward_seconds : layer.forward_flops;
    forward += part;
    backward.push_back(model.measured() ? layer.backward_seconds : 2 * part);
  }
  double other = model.other_seconds;
  double all = forward + other;
  for (const double part : backward) all += part;
  if (setting.step_seconds > 0) {
    slower *= setting.step_seconds / all;
  } else if (model.measured()) {
    slower *= batch / static_cast<double>(model.measured_batch);
    // The optimizer does not know the batch.
    other *= static_cast<double>(model.measured_batch) / batch;
  } else {
    slower *= batch / setting.flops;
  }
  parts.forward = forward * slower;
  parts.other = other * slower;
  for (auto part = backward.rbegin(); part != backward.rend(); ++part) {
    parts.backward.push_back(*part * slower);
  }
  return parts;
}

// The method as it is used on these nodes.
std::string placed(const std::string& spec, const Network& network) {
  const auto groups = methods::groups_of(spec);
  if (groups) {
    if (*groups != "1" && *groups != std::to_string(network.per_node) && *groups != "node") {
      throw core::UsageError(concat("[plan] '", spec, "' has groups of ", *groups,
                                    ", and there are ", network.per_node,
                                    " workers a node: give --groups ", *groups, " or groups=1"));
    }
    const std::string alone = methods::without_groups(spec);
    // Who cannot have groups says so.
    methods::make(spec);
    return *groups == "1" || network.per_node == 1 ? alone
                                                   : concat(alone, ",groups=", network.per_node);
  }
  const std::string grouped = concat(spec, ",groups=", network.per_node);
  const std::string name = core::split(spec, ',').front();
  const bool can = methods::describe(name).find("groups=") != std::string::npos;
  return network.per_node > 1 && can && methods::make(spec)->divides() ? grouped : spec;
}

// As Candidate::dense_first_layer. Layers too small to be compressed do not come to much.
double dense_first_layer_of(const std::vector<layout::Layout>& buckets) {
  double all = 0;
  double first = 0;
  bool compresses = false;
  for (const layout::Layout& bucket : buckets) {
    for (const layout::Slice& slice : bucket.slices()) {
      const auto length = static_cast<double>(slice.length);
      all += length;
      if (!slice.dense()) compresses = true;
      if (slice.dense() && slice.shape.size() > 1) first = std::max(first, length);
    }
  }
  return compresses ? first / all : 0;
}

}  // namespace

Candidate::Candidate(const Setting& setting, const std::string& spec)
    : spec_(placed(spec, setting.network)),
      grouped_(methods::groups_of(spec_).has_value()),
      network_(setting.network),
      compute_(computing(setting)) {
  const auto method = methods::make(spec_);
  const std::string own = methods::without_groups(method->spec());
  const layout::RatePlan rates(tensors_of(setting.model, setting.batch), method->rate_policy());
  std::vector<layout::Layout> layouts;
  for (const Bucket& bucket : cut_buckets(setting.model, setting.bucket_bytes)) {
    const layout::Layout& layout = layouts.emplace_back(rates.bucket(bucket.tensors));
    const double elements =
        static_cast<double>(layout.elements()) / (grouped_ ? network_.per_node : 1);
    const auto compress = setting.kernels.seconds(own, elements);
    measured_ = measured_ && compress.has_value();
    works_.push_back(
        {bucket.ready_after, compress.value_or(0), busiest(*method, layout, network_)});
    moved_.inside += works_.back().levels.inside;
    moved_.between += works_.back().levels.between;
  }
  if (method->rate_policy().first_layer_dense) dense_first_layer_ = dense_first_layer_of(layouts);
}

double Candidate::sent_between() const {
  const auto sent = static_cast<double>(moved_.between.total().sent);
  return grouped_ ? sent : sent * share_between(network_);
}

StepTime Candidate::time(double bandwidth) const {
  Network network = network_;
  network.between = network.between.with_bandwidth(bandwidth);
  return time_over(network);
}

StepTime Candidate::time_over(const Network& network) const {
  StepParts parts = compute_;
  for (const Work& work : works_) {
    const WireTime wires = wire_time(work.levels, grouped_, network);
    parts.buckets.push_back(
        {work.ready_after, wires.gather, work.compress, wires.between, wires.spread});
  }
  return schedule(parts);
}

}  // namespace scalecom::plan
