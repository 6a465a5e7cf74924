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

// As Candidate::dense_first_layer.
double dense_first_layer_of(const std::vector<layout::Tensor>& model, layout::RatePolicy policy) {
  const auto first = std::find_if(model.begin(), model.end(),
                                  [](const auto& tensor) { return tensor.shape.size() > 1; });
  if (first == model.end()) return 0;
  const auto is_dense = [&] {
    return layout::RatePlan(model, policy).rate_of(first->name) <= layout::kDense;
  };
  if (!is_dense()) return 0;
  policy.first_layer_dense = false;
  if (is_dense()) return 0;
  double all = 0;
  for (const layout::Tensor& tensor : model) all += static_cast<double>(tensor.elements());
  return static_cast<double>(first->elements()) / all;
}

}  // namespace

Candidate::Candidate(const Setting& setting, const std::string& spec)
    : spec_(placed(spec, setting.network)),
      grouped_(methods::groups_of(spec_).has_value()),
      network_(setting.network),
      compute_(computing(setting)) {
  const auto method = methods::make(spec_);
  const std::string own = methods::without_groups(method->spec());
  const std::vector<layout::Tensor> tensors = tensors_of(setting.model, setting.batch);
  const layout::RatePlan rates(tensors, method->rate_policy());
  for (const Bucket& bucket : cut_buckets(setting.model, setting.bucket_bytes)) {
    const layout::Layout layout = rates.bucket(bucket.tensors);
    const double elements =
        static_cast<double>(layout.elements()) / (grouped_ ? network_.per_node : 1);
    const auto compress = setting.kernels.seconds(own, elements);
    measured_ = measured_ && compress.has_value();
    works_.push_back(
        {bucket.ready_after, compress.value_or(0), busiest(*method, layout, network_)});
    moved_.inside += works_.back().levels.inside;
    moved_.between += works_.back().levels.between;
  }
  dense_first_layer_ = dense_first_layer_of(tensors, method->rate_policy());
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
