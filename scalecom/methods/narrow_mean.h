#pragma once

#include <cstdint>
#include <span>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/aligned_array.h"
#include "scalecom/core/dtype.h"

namespace scalecom::methods {

/// A mean whose values cross the network in 16 bits: every rank's share goes to its owner as such,
/// is summed there in fp32 in the order of ranks, and its mean comes back in 16 bits again.
class NarrowMean {
 public:
  /// `values`, which must be representable in `type`, become their mean over ranks, also
  /// representable. What the second rounding took from the sum (sum - n * mean) is left in
  /// rounding()[0 .. owned().size()) for the values of owned(): this rank did it.
  void operator()(std::span<float> values, core::DType type, comm::Communicator& communicator);

  comm::Share owned() const { return owned_; }
  const float* rounding() const { return rounding_.data(); }

  static comm::Counters cost(std::int64_t values, int size, int rank);

 private:
  void reserve(std::int64_t values, int ranks);
  void sum_owned(core::DType type, int size, std::int64_t begin, std::int64_t end);

  comm::Share owned_;
  core::AlignedArray<std::uint16_t> narrow_;   // all values, on their way out and back
  core::AlignedArray<std::uint16_t> arrived_;  // every rank's part of the owned share
  core::AlignedArray<float> sum_;              // of the owned share
  core::AlignedArray<float> rounding_;
};

}  // namespace scalecom::methods
