#include "train/models/together/depthwise.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "train/models/together/on_device.h"

namespace train::models::together {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

/// By torch: the gradient of x and of the weights, (channels, 1, 3, 3), of one batch.
std::pair<at::Tensor, at::Tensor> by_torch(const at::Tensor& grad, const at::Tensor& x,
                                           const at::Tensor& weight, std::int64_t stride,
                                           std::array<bool, 2> wanted) {
  const auto [grad_x, grad_weight, none] =
      at::convolution_backward(grad, x, weight, {}, {stride, stride}, {1, 1}, {1, 1}, false, {0, 0},
                               x.size(1), {wanted[0], wanted[1], false});
  return {grad_x, grad_weight};
}

/// (channels, 1, 3, 3) of (9, channels).
at::Tensor for_torch(const at::Tensor& weight, const at::Tensor& x) {
  return weight.t().reshape({-1, 1, 3, 3}).to(x.scalar_type());
}

at::Tensor forward_pass(const at::Tensor& x, const at::Tensor& weight, std::int64_t stride) {
  if (!has_kernels(x)) {
    return at::conv2d(x, for_torch(weight, x), {}, stride, 1, 1, x.size(1));
  }
  const Places in = places_of(x);
  const Places out = in.after(stride);
  at::Tensor y = at::empty({out.samples, out.channels, out.height, out.width},
                           x.options().memory_format(kChannelsLast));
  cuda::depthwise_forward(x.const_data_ptr(), weight.const_data_ptr<float>(), in, stride,
                          y.mutable_data_ptr(), current_stream(x));
  return y;
}

at::Tensor gradient_of_input(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                             std::int64_t stride) {
  if (!has_kernels(x)) {
    return by_torch(grad, x, for_torch(weight, x), stride, {true, false}).first;
  }
  at::Tensor grad_x = at::empty_like(x);
  cuda::depthwise_input(grad.const_data_ptr(), weight.const_data_ptr<float>(), places_of(x), stride,
                        grad_x.mutable_data_ptr(), current_stream(x));
  return grad_x;
}

/// (learners, 9, channels).
at::Tensor gradients_of_weights(const at::Tensor& grad, const at::Tensor& x,
                                const at::Tensor& weight, std::int64_t learners,
                                std::int64_t stride) {
  if (!has_kernels(x)) {
    std::vector<at::Tensor> own;
    const auto grads = grad.chunk(learners);
    const auto batches = x.chunk(learners);
    for (std::size_t i = 0; i < grads.size(); ++i) {
      own.push_back(by_torch(grads[i], batches[i], for_torch(weight, x), stride, {false, true})
                        .second.flatten(1)
                        .t());
    }
    return at::stack(own).to(at::kFloat);
  }
  const Places in = places_of(x);
  const at::TensorOptions options = x.options().dtype(at::kFloat).memory_format(c10::nullopt);
  const at::Tensor parts =
      at::empty({learners, cuda::depthwise_parts(in, learners, stride), 9, in.channels}, options);
  const at::Tensor own = at::empty({learners, 9, in.channels}, options);
  cuda::depthwise_weights(grad.const_data_ptr(), x.const_data_ptr(), in, learners, stride,
                          parts.mutable_data_ptr<float>(), own.mutable_data_ptr<float>(),
                          current_stream(x));
  return own;
}

struct Depthwise : torch::autograd::Function<Depthwise> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weights, std::int64_t stride) {
    const at::Tensor weight = weights.select(0, 0).reshape({9, -1}).contiguous();
    context->save_for_backward({x, weight});
    context->saved_data["stride"] = stride;
    context->saved_data["learners"] = weights.size(0);
    return forward_pass(x, weight, stride);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto kept = context->get_saved_variables();
    const std::int64_t stride = context->saved_data["stride"].toInt();
    const std::int64_t learners = context->saved_data["learners"].toInt();
    const at::Tensor grad = grads[0].contiguous(kChannelsLast);
    const at::Tensor own = gradients_of_weights(grad, kept[0], kept[1], learners, stride);
    return {gradient_of_input(grad, kept[0], kept[1], stride),
            own.reshape({learners, 3, 3, 1, -1}),
            {}};
  }
};

}  // namespace

at::Tensor depthwise(const at::Tensor& x, const at::Tensor& weights, std::int64_t stride) {
  return Depthwise::apply(x, weights, stride);
}

}  // namespace train::models::together
