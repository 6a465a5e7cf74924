#include "train/models/layers/dropout.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <utility>

#include "train/models/current_stream.h"
#include "train/models/layers/cuda/dropout.h"

namespace train::models::layers {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kBytes = 4;  // of a drawn number

std::int32_t salt_of(std::uint32_t draw) {
  return static_cast<std::int32_t>(0x3c6ef373U * draw);
}

/// On a GPU: the same numbers are dropped of the gradient, drawn again in place of being kept.
struct Drop : torch::autograd::Function<Drop> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& noise,
                            std::int64_t salt, std::int64_t byte, std::int64_t limit) {
    context->save_for_backward({noise});
    context->saved_data["salt"] = salt;
    context->saved_data["byte"] = byte;
    context->saved_data["limit"] = limit;
    return dropped(x, noise, salt, byte, limit);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    auto& given = context->saved_data;
    return {dropped(grads[0], context->get_saved_variables()[0], given["salt"].toInt(),
                    given["byte"].toInt(), given["limit"].toInt()),
            {},
            {},
            {},
            {}};
  }

 private:
  static at::Tensor dropped(const at::Tensor& given, const at::Tensor& noise, std::int64_t salt,
                            std::int64_t byte, std::int64_t limit) {
    const at::Tensor x = given.contiguous();
    const at::Tensor y = at::empty_like(x);
    cuda::drop(x.const_data_ptr<float>(),
               {noise.const_data_ptr<std::int32_t>(), noise.numel(), x.size(0) / noise.numel(),
                x.size(1) * x.size(2), Dropout::kPlaces * x.size(2),
                static_cast<std::int32_t>(salt), static_cast<int>(byte), static_cast<int>(limit)},
               y.mutable_data_ptr<float>(), current_stream(x));
    return y;
  }
};

}  // namespace

Dropout::Dropout(at::Tensor noise, double share)
    : noise_(std::move(noise)), limit_(static_cast<int>(std::lround(256 * share))) {}

at::Tensor Dropout::operator()(const at::Tensor& x) {
  if (!noise_.defined() || limit_ == 0) return x;
  const std::int64_t byte = used_++ % kBytes;
  if (byte == 0) ++draws_;
  if (x.is_cuda()) return Drop::apply(x, noise_, salt_of(draws_), byte, limit_);
  if (byte == 0 || bits_.numel() != x.numel()) draw(x);
  const at::Tensor bytes = bits_.view(at::kByte).view({-1, kBytes}).select(1, byte).view(x.sizes());
  return x * bytes.ge(limit_).to(at::kFloat).mul_(256.0 / (256 - limit_));
}

/// One well-mixed number of 32 bits for each element of each learner.
void Dropout::draw(const at::Tensor& x) {
  const std::int64_t samples = x.size(0) / noise_.numel();
  const at::Tensor first = at::arange(samples, noise_.options()) * (kPlaces * x.size(2));
  const at::Tensor within = at::arange(x.size(1) * x.size(2), noise_.options());
  const at::Tensor elements = (first.unsqueeze(1) + within.unsqueeze(0)).flatten();
  bits_ = elements.unsqueeze(0) + noise_.unsqueeze(1);
  bits_.add_(salt_of(draws_));
  for (const std::int32_t factor : {0x7feb352d, 0x2c1b3c6d}) {
    bits_.bitwise_xor_(bits_.bitwise_right_shift(16)).mul_(factor);
  }
  bits_.bitwise_xor_(bits_.bitwise_right_shift(15));
}

}  // namespace train::models::layers
