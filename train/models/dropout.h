#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>

/// For the files that compute with torch, whose headers take half a minute.
namespace train::models {

/// Sets a share of numbers to 0 and makes up for it with the rest. Which ones is a function of a
/// number on the device, so that it is the same on every device and new at each replay of a CUDA
/// graph. A number is kept or not by 8 bits, so the share is one of 256.
class Dropout {
 public:
  /// Nothing happens where `noise` is undefined.
  Dropout(at::Tensor noise, double share)
      : noise_(std::move(noise)), limit_(static_cast<int>(std::lround(256 * share))) {}

  at::Tensor operator()(const at::Tensor& x) {
    if (!noise_.defined() || limit_ == 0) return x;
    // Four calls in a row for arrays of one size take a byte each of the same bits.
    const std::int64_t use = used_++ % 4;
    if (use == 0 || bits_.numel() != x.numel()) draw(x.numel());
    const at::Tensor bytes = bits_.view(at::kByte).view({-1, 4}).select(1, use).view(x.sizes());
    return x * bytes.ge(limit_).to(at::kFloat).mul_(256.0 / (256 - limit_));
  }

 private:
  /// One well-mixed number of 32 bits for each element and draw.
  void draw(std::int64_t elements) {
    bits_ = at::arange(elements, noise_.options());
    bits_.add_(noise_).add_(static_cast<std::int32_t>(0x3c6ef373U * ++draws_));
    for (const std::int32_t factor : {0x7feb352d, 0x2c1b3c6d}) {
      bits_.bitwise_xor_(bits_.bitwise_right_shift(16)).mul_(factor);
    }
    bits_.bitwise_xor_(bits_.bitwise_right_shift(15));
  }

  at::Tensor noise_;
  int limit_;
  at::Tensor bits_;
  std::int64_t used_ = 0;
  std::uint32_t draws_ = 0;
};

}  // namespace train::models
