#include "train/models/together/convolution.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "train/models/together/columns.h"

namespace train::models::together {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;
constexpr std::int64_t kAlignment = 8;  // channels that a GPU takes at once

/// A product a learner, with sums in fp32.
at::Tensor products(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == at::kFloat ? at::bmm(a, b) : at::bmm(a, b, at::kFloat);
}

struct Convolution : torch::autograd::Function<Convolution> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weights, std::int64_t stride) {
    // As torch has it: (outputs, inputs, height, width).
    const at::Tensor weight =
        weights.select(0, 0).permute({3, 2, 0, 1}).to(x.scalar_type()).contiguous(kChannelsLast);
    context->save_for_backward({x, weight});
    context->saved_data["stride"] = stride;
    context->saved_data["learners"] = weights.size(0);
    return at::conv2d(x, weight, {}, stride, weight.size(2) / 2);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto kept = context->get_saved_variables();
    const at::Tensor& x = kept[0];
    const at::Tensor& weight = kept[1];
    const std::int64_t stride = context->saved_data["stride"].toInt();
    const std::int64_t learners = context->saved_data["learners"].toInt();
    const at::Tensor grad = grads[0].contiguous(kChannelsLast);
    at::Tensor grad_x;
    if (context->needs_input_grad(0)) grad_x = gradient_of_input(grad, x, weight, stride);

    const std::int64_t kernel = weight.size(2);
    const std::int64_t width = kernel * kernel * weight.size(1);
    const at::Tensor columns = columns_of(x, kernel, stride).view({learners, -1, width});
    const at::Tensor rows = grad.permute({0, 2, 3, 1}).reshape({learners, -1, weight.size(0)});
    const at::Tensor own = products(rows.transpose(1, 2), columns)
                               .view({learners, weight.size(0), kernel, kernel, weight.size(1)});
    return {grad_x, own.permute({0, 2, 3, 4, 1}), {}};
  }

 private:
  static at::Tensor gradient_of_input(const at::Tensor& grad, const at::Tensor& x,
                                      const at::Tensor& weight, std::int64_t stride) {
    const std::int64_t padding = weight.size(2) / 2;
    return std::get<0>(at::convolution_backward(grad, x, weight, {}, {stride, stride},
                                                {padding, padding}, {1, 1}, false, {0, 0}, 1,
                                                {true, false, false}));
  }
};

}  // namespace

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weights, std::int64_t stride) {
  const std::int64_t missing = (kAlignment - x.size(1) % kAlignment) % kAlignment;
  if (!x.is_cuda() || missing == 0) return Convolution::apply(x, weights, stride);
  const at::Tensor padded = at::constant_pad_nd(x, {0, 0, 0, 0, 0, missing});
  return Convolution::apply(padded.contiguous(kChannelsLast),
                            at::constant_pad_nd(weights, {0, 0, 0, missing}), stride);
}

}  // namespace train::models::together
