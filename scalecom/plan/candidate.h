#pragma once

#include <string>
#include <vector>

#include "scalecom/plan/outlook.h"

namespace scalecom::plan {

/// A method with all that does not depend on the wires, so that it can be timed over many of them.
class Candidate {
 public:
  /// UsageError as look_ahead().
  Candidate(const Setting& setting, const std::string& spec);

  const std::string& spec() const { return spec_; }
  bool measured() const { return measured_; }
  /// Of all buckets.
  const methods::LevelTraffic& moved() const { return moved_; }
  /// Bytes of them that leave the node, of a worker in the mean where it shares one.
  double sent_between() const;

  /// The share of the parameters that are the first layer's, where that travels dense for no other
  /// reason than being the first; else 0.
  double dense_first_layer() const { return dense_first_layer_; }

  StepTime time() const { return time_over(network_); }
  /// The step where a node has so many bytes a second to others.
  StepTime time(double bandwidth) const;

 private:
  struct Work {
    std::size_t ready_after;
    double compress;
    methods::LevelTraffic levels;
  };

  StepTime time_over(const Network& network) const;

  std::string spec_;
  bool grouped_ = false;
  bool measured_ = true;
  Network network_;
  StepParts compute_;  // without buckets
  std::vector<Work> works_;
  methods::LevelTraffic moved_;
  double dense_first_layer_ = 0;
};

}  // namespace scalecom::plan
