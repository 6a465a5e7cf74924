#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/array.h"
#include "scalecom/core/dtype.h"

namespace scalecom::methods {

/// A mean whose values cross the network in 16 bits: every rank's share goes to its owner as such,
/// is summed there in fp32 in the order of ranks, and its mean comes back in 16 bits again.
class NarrowMean {
 public:
  /// `values`, which must be representable in `type` and lie on the stream's device, become their
  /// mean over ranks, also representable. What the second rounding took from the sum (sum - n *
  /// mean) is left in rounding()[0 .. owned().size()) for the values of owned(): this rank did it.
  void operator()(std::span<float> values, core::DType type, comm::Communicator& communicator,
                  const core::Stream& stream);

  /// Room for so many values on a device, which is otherwise made by the first.
  void reserve(std::int64_t values, int rank, int ranks, core::Device device);

  comm::Share owned() const { return owned_; }
  const float* rounding() const { return rounding_.data(); }
  /// The same where the host can look at it. Waits for a GPU.
  std::vector<float> rounding_on_host() const;

  static comm::Counters cost(std::int64_t values, int size, int rank);

 private:
  core::Stream stream_;
  comm::Share owned_;
  core::Array<std::uint16_t> narrow_;   // all values, on their way out and back
  core::Array<std::uint16_t> arrived_;  // every rank's part of the owned share
  core::Array<float> rounding_;
};

}  // namespace scalecom::methods
