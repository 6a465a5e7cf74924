#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace scalecom::layout {

/// A parameter of the model, as its owner describes it.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  /// FLOPs of this tensor's layer for one rank's mini-batch, over its number of parameters. Only
  /// rates=flops and rates=paper ask for it; 0 means unknown.
  double flops_per_gradient = 0;

  std::int64_t elements() const;
};

/// The rate of a slice that travels whole.
constexpr double kDense = 1;

/// One tensor's place in a bucket, or that of a part of it, and how it travels.
struct Slice {
  std::string name;
  std::int64_t offset = 0;  ///< of its first element in the bucket
  std::int64_t length = 0;
  double rate = kDense;  ///< one value in `rate` is sent
  /// The whole tensor's sizes, for methods that see a matrix in it; empty for a row of numbers.
  std::vector<std::int64_t> shape = {};
  /// Where the tensor is divided among ranks: its element that is the slice's first.
  std::int64_t first = 0;

  bool dense() const { return rate <= kDense; }
  /// Whether it is the whole of its tensor.
  bool whole() const;
  /// What tells its memory from others: the name, and of a part also its elements, "fc[200:400]".
  std::string key() const;
};

/// A part's key() taken apart.
struct PartKey {
  std::string name;
  std::int64_t first = 0;
  std::int64_t end = 0;  ///< not before `first`
};
/// Nothing for what key() makes of no part, such as the name of a whole tensor.
std::optional<PartKey> parse_part_key(const std::string& key);

/// The slices of one bucket: which tensors lie in it, in order and without gaps, and at what rate
/// each travels. Fixed once made. Names are unique within a bucket and tell a method which memory
/// belongs to which slice, so a tensor may move to another bucket at any time.
class Layout {
 public:
  Layout() = default;
  /// UsageError for a name that is empty, stands twice or reads as a part's key, a negative length,
  /// a rate under 1 or not finite, elements that its shape does not have, or slices that do not
  /// follow one another from 0.
  explicit Layout(std::vector<Slice> slices);

  std::span<const Slice> slices() const { return slices_; }
  std::int64_t elements() const { return elements_; }
  /// Equal for equal layouts, on every machine.
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  std::vector<Slice> slices_;
  std::int64_t elements_ = 0;
  std::uint64_t fingerprint_ = 0;
};

/// The same slices, none of them compressed: what a step of a dense warm-up sends.
Layout all_dense(const Layout& layout);

}  // namespace scalecom::layout
