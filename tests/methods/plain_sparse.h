#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "scalecom/layout/layout.h"
#include "tests/methods/ranks.h"

/// The methods whose ranks choose for themselves, stated again as plainly as they can be: all ranks
/// in one loop, every entry by itself, sets by sorting. They share no code with the library but the
/// layout's slices, and nothing they are given is NaN or Inf.
namespace scalecom::methods::testing {

/// Entries of a bucket by their place in it.
using PlainSet = std::map<std::int64_t, float>;

/// The `keep` largest |values| of entries in the order of their places, the first among equals.
PlainSet plain_largest(std::vector<std::pair<std::int64_t, float>> entries, std::int64_t keep);

class PlainTopk {
 public:
  PlainTopk(int ranks, layout::Layout layout);

  /// The mean of one step.
  std::vector<float> step(const Gradients& gradients);
  const Gradients& memories() const { return memories_; }

 private:
  layout::Layout layout_;
  Gradients memories_;
};

class PlainGtopk {
 public:
  PlainGtopk(int ranks, layout::Layout layout);

  std::vector<float> step(const Gradients& gradients);
  const Gradients& memories() const { return memories_; }

 private:
  layout::Layout layout_;
  Gradients memories_;
};

/// DGC without its sample: `take` says what each rank sends.
class PlainDgc {
 public:
  struct Rules {
    float momentum = 0.9F;
    bool nesterov = false;
    double clip = 0;
  };

  PlainDgc(int ranks, Rules rules, layout::Layout layout);

  /// What each rank has to choose from, after the gradients have come.
  const Gradients& accumulate(const Gradients& gradients);
  /// The mean, where rank r sends the entries of sets[r].
  std::vector<float> send(const std::vector<std::vector<std::int64_t>>& sets);

  const Gradients& memories() const { return memories_; }
  const Gradients& velocities() const { return velocities_; }

 private:
  Rules rules_;
  layout::Layout layout_;
  Gradients memories_;
  Gradients velocities_;
  Gradients dense_;  // what each rank sends of the dense slices
};

/// Weighted error feedback on the largest entry of every chunk of the rank whose turn it is.
class PlainWeighted {
 public:
  PlainWeighted(int ranks, float a, float b, layout::Layout layout);

  std::vector<float> step(const Gradients& gradients);
  const Gradients& memories() const { return memories_; }

 private:
  float a_;
  float b_;
  layout::Layout layout_;
  std::int64_t steps_ = 0;
  Gradients memories_;
};

}  // namespace scalecom::methods::testing
