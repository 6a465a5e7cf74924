#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scalecom/core/aligned_array.h"
#include "scalecom/core/buffer.h"
#include "scalecom/kernels/bins.h"
#include "scalecom/layout/bins.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/dense_slices.h"
#include "scalecom/methods/memory_store.h"

namespace scalecom::methods::adacomp {

/// Elements of a bin, by the kind of tensor.
struct BinSizes {
  std::int64_t convolution = 50;  ///< three or more dimensions
  std::int64_t other = 500;
};

/// A bucket of one layout at one rank, from step to step: what it sends, and what it takes from the
/// messages of all ranks. A message is, for every compressed tensor in their order, the scale
/// (fp32), the bytes of the words (uint32, lowest byte first), and the words (wire/ternary.h).
class Bucket {
 public:
  /// Without memories it can only tell sizes. UsageError for a tensor of more elements than a
  /// message can name.
  Bucket(const layout::Layout& layout, const BinSizes& sizes, MemoryStore* memories);

  const DenseSlices& dense() const { return dense_; }
  /// A message in which no bin sends anything: what a step costs at least.
  std::int64_t least_bytes() const;
  /// One in which every element is sent.
  std::int64_t most_bytes() const;

  /// Chooses what this rank sends and takes it out of the memories. Returns whether all was finite.
  bool select(const core::Buffer& grad);
  std::vector<std::byte> message() const;
  /// The sum of what all ranks sent, times `factor`, into the compressed slices of the gradient.
  /// Returns whether all was finite. PeerError, with the gradient undefined, for a message that
  /// cannot be one.
  bool add_up(std::span<const std::span<const std::byte>> messages, float factor,
              const core::Buffer& grad);
  /// The memories as if nothing had been sent.
  void put_back();
  void forget_sent();

  std::int64_t step = -1;
  /// What every rank's message had in the last step; for Method::cost.
  std::vector<std::int64_t> message_bytes;

 private:
  struct Part {
    std::string name;
    std::int64_t offset = 0;
    std::int64_t first = 0;  // of its elements among those of all parts
    layout::Bins bins;
    float* memory = nullptr;
    kernels::bins::Sent sent;
  };
  struct Words {
    float scale = 0;
    std::span<const std::byte> bytes;
  };

  /// Of every part, in a message.
  std::vector<Words> cut(std::span<const std::byte> message) const;
  void add(const Part& part, const Words& words, float* sums) const;

  std::vector<Part> parts_;
  core::AlignedArray<float>
      sums_;  // kept: fresh pages would cost more than all that is done with them
  DenseSlices dense_;
};

}  // namespace scalecom::methods::adacomp
