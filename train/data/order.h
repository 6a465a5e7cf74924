#pragma once

#include <cstdint>
#include <span>

namespace train::data {

/// Which samples a learner sees when: a function of (seed, learner, step) for a given data set,
/// number of learners and mini-batch, without any state, so that it is the same however learners
/// are divided over processes and wherever a run is taken up again.
///
/// The epochs' permutations follow one another without a gap, and each step takes the next
/// learners * batch samples of them, learner 0 the first `batch`: every sample comes once an epoch,
/// and an epoch may end in the middle of a step.
class Order {
 public:
  /// All of them 1 or more.
  Order(std::uint64_t seed, std::int64_t samples, int learners, std::int64_t batch);

  /// Fills `out`, which has room for one mini-batch.
  void batch(int learner, std::int64_t step, std::span<std::int64_t> out) const;

  /// Samples that all learners together see in a step.
  std::int64_t samples_a_step() const { return learners_ * batch_; }
  /// Whole epochs that are over after `steps` steps.
  std::int64_t epochs_after(std::int64_t steps) const {
    return steps * samples_a_step() / samples_;
  }

 private:
  std::int64_t sample(std::int64_t position) const;

  std::uint64_t seed_;
  std::int64_t samples_;
  std::int64_t learners_;
  std::int64_t batch_;
  int half_bits_;  // of the Feistel network, over the smallest even power of two that holds all
};

}  // namespace train::data
