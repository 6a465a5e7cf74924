#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "train/models/network.h"
#include "train/task.h"

namespace train::tasks {

/// Labelled samples.
class Examples {
 public:
  virtual ~Examples() = default;
  virtual std::int64_t size() const = 0;
  virtual std::int64_t label(std::int64_t sample) const = 0;
  /// A sample as the network takes it.
  virtual void copy(std::int64_t sample, std::span<float> out) const = 0;
  /// The same with the changes that training makes to it at random, all of them drawn from `noise`.
  virtual void copy_varied(std::int64_t sample, std::uint64_t noise, std::span<float> out) const {
    static_cast<void>(noise);
    copy(sample, out);
  }
};

/// The task of telling classes apart; its metric is the share of the test set that is told right,
/// in percent.
std::unique_ptr<Task> make_classification(const models::Network::Options& network,
                                          std::unique_ptr<Examples> training,
                                          std::unique_ptr<Examples> test);

}  // namespace train::tasks
