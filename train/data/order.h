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
/// and an epoch may end in the middle of a step. So it is too when another number of learners takes
/// the run up, from where it stands.
class Order {
 public:
  /// All of them 1 or more.
  Order(std::uint64_t seed, std::int64_t samples, int learners, std::int64_t batch);

  /// Fills `out`, which has room for one mini-batch.
  void batch(int learner, std::int64_t step, std::span<std::int64_t> out) const;

  /// The first `steps` steps, of however many learners, have seen `seen` samples.
  void continue_after(std::int64_t steps, std::int64_t seen) {
    origin_ = seen - steps * samples_a_step();
  }

  /// Samples that all learners together see in a step.
  std::int64_t samples_a_step() const { return learners_ * batch_; }
  /// Samples that were seen when `steps` steps are over.
  std::int64_t seen_after(std::int64_t steps) const { return origin_ + steps * samples_a_step(); }
  /// Whole epochs that are over after `steps` steps.
  std::int64_t epochs_after(std::int64_t steps) const { return seen_after(steps) / samples_; }

 private:
  std::int64_t sample(std::int64_t position) const;

  std::uint64_t seed_;
  std::int64_t samples_;
  std::int64_t learners_;
  std::int64_t batch_;
  std::int64_t origin_ = 0;  // of positions; 0 as long as the number of learners stays
  int half_bits_;  // of the Feistel network, over the smallest even power of two that holds all
};

}  // namespace train::data
