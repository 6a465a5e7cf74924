#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace train::models::layers {

/// Sets a share of numbers to 0 and makes up for it with the rest. Which ones is a function of a
/// number on the device, so that it is the same on every device and new at each replay of a CUDA
/// graph. A number is kept or not by 8 bits, so the share is one of 256.
class Dropout {
 public:
  /// `noise` has a number for each learner, who has as many of the samples, in turn. Nothing
  /// happens where it is undefined.
  Dropout(at::Tensor noise, double share);

  /// Of (samples, places, channels). How many places there are, which depends on the longest of the
  /// samples that happen to be computed together, is no matter for what becomes of each.
  at::Tensor operator()(const at::Tensor& x);
  /// Samples have fewer places.
  static constexpr std::int64_t kPlaces = 1024;

 private:
  void draw(const at::Tensor& x);

  at::Tensor noise_;
  int limit_;
  // Four calls in a row take a byte each of the same bits.
  std::int64_t used_ = 0;
  std::uint32_t draws_ = 0;
  at::Tensor bits_;  // on the host
};

}  // namespace train::models::layers
