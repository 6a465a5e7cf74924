#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalecom/core/dtype.h"
#include "scalecom/layout/layout.h"
#include "tests/methods/ranks.h"

namespace scalecom::methods::testing {

/// ScaleCom stated again, as plainly as it can be: all ranks in one loop, every entry by itself,
/// sets by sorting. It shares no code with the library but number formats and the layout's slices.
class PlainScaleCom {
 public:
  struct Rules {
    float beta = 0.1F;
    float decay = 1;
    core::DType values = core::DType::kFloat32;
    std::int64_t top_of = 0;  ///< chunk:C; 0 is the largest of every chunk of `rate`
    bool exact = false;
    bool sharded = false;
  };

  PlainScaleCom(int ranks, Rules rules, layout::Layout layout);

  /// The mean of one step, in which nothing is NaN or Inf.
  std::vector<float> step(const Gradients& gradients);

  const Gradients& memories() const { return memories_; }
  const std::vector<std::int64_t>& last_set() const { return set_; }

 private:
  struct Chunk {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t keep;
  };

  std::vector<Chunk> chunks_of(const layout::Slice& slice) const;
  std::vector<std::int64_t> largest(const std::vector<float>& u, std::vector<std::int64_t> among,
                                    std::int64_t keep) const;
  /// The rank in whose share a thing lies.
  int owner_of(std::size_t thing, std::size_t things) const;
  std::vector<std::int64_t> select(const Gradients& u) const;
  std::vector<std::int64_t> select_exact(const std::vector<float>& u) const;

  int ranks_;
  Rules rules_;
  layout::Layout layout_;
  std::int64_t steps_ = 0;
  Gradients memories_;
  std::vector<std::int64_t> set_;
};

}  // namespace scalecom::methods::testing
