#include "train/models/together/batch_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "train/models/together/on_device.h"

namespace train::models::together {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

cuda::Normed normed(const at::Tensor& x, std::int64_t learners, Activation activation) {
  const Places places = places_of(x);
  return {learners, places.count() / learners, places.channels, least(activation),
          most(activation)};
}

at::TensorOptions in_floats(const at::Tensor& x) {
  return x.options().dtype(at::kFloat).memory_format(c10::nullopt);
}

/// In one pass for the figures and one for the rest, each way.
struct FusedBatchNorm : torch::autograd::Function<FusedBatchNorm> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const at::Tensor& scales, const at::Tensor& biases,
                               const std::optional<at::Tensor>& added, std::int64_t activation) {
    const std::int64_t learners = scales.size(0);
    const auto kind = static_cast<Activation>(activation);
    const cuda::Normed shape = normed(x, learners, kind);
    const at::Tensor scale = scales.select(0, 0).contiguous();
    const at::Tensor bias = biases.select(0, 0).contiguous();
    const at::Tensor parts = at::empty({2 * cuda::parts_elements(shape)}, in_floats(x));
    const at::Tensor mean = at::empty({learners, x.size(1)}, in_floats(x));
    const at::Tensor variance = at::empty_like(mean);
    const at::Tensor inverse = at::empty_like(mean);
    at::Tensor y = at::empty_like(x);
    cuda::batch_norm_forward(shape,
                             {x.const_data_ptr(), added ? added->const_data_ptr() : nullptr,
                              scale.const_data_ptr<float>(), bias.const_data_ptr<float>(),
                              parts.mutable_data_ptr<float>(), mean.mutable_data_ptr<float>(),
                              variance.mutable_data_ptr<float>(), inverse.mutable_data_ptr<float>(),
                              y.mutable_data_ptr()},
                             current_stream(x));
    context->save_for_backward({x, y, scale, mean, inverse});
    context->saved_data["activation"] = activation;
    context->saved_data["adds"] = added.has_value();
    context->mark_non_differentiable({mean, variance});
    return {y, mean, variance};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto kept = context->get_saved_variables();
    const at::Tensor& x = kept[0];
    const at::Tensor& mean = kept[3];
    const auto kind = static_cast<Activation>(context->saved_data["activation"].toInt());
    const cuda::Normed shape = normed(x, mean.size(0), kind);
    const at::Tensor grad = grads[0].contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor parts = at::empty({2 * cuda::parts_elements(shape)}, in_floats(x));
    at::Tensor grad_scale = at::empty_like(mean);
    at::Tensor grad_bias = at::empty_like(mean);
    at::Tensor grad_x = at::empty_like(x);
    at::Tensor grad_added;
    if (context->saved_data["adds"].toBool()) grad_added = at::empty_like(x);
    cuda::batch_norm_backward(
        shape,
        {grad.const_data_ptr(), x.const_data_ptr(), kept[1].const_data_ptr(),
         kept[2].const_data_ptr<float>(), mean.const_data_ptr<float>(),
         kept[4].const_data_ptr<float>(), parts.mutable_data_ptr<float>(),
         grad_scale.mutable_data_ptr<float>(), grad_bias.mutable_data_ptr<float>(),
         grad_x.mutable_data_ptr(), grad_added.defined() ? grad_added.mutable_data_ptr() : nullptr},
        current_stream(x));
    return {grad_x, grad_scale, grad_bias, grad_added, {}};
  }
};

/// The same in torch's operations.
at::Tensor plain(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias,
                 Activation activation, const at::Tensor& added, Seen& seen) {
  const at::Tensor places = x.permute({0, 2, 3, 1});
  const at::Tensor rows =
      places.reshape({scale.size(0), -1, x.size(1)}).to(at::kFloat);  // of each learner
  const at::Tensor mean = rows.mean(1, true);
  const at::Tensor centred = rows - mean;
  const at::Tensor variance = centred.square().mean(1, true);
  const auto count = static_cast<double>(rows.size(1));
  seen = {mean.detach().squeeze(1), (variance.detach() * (count / (count - 1))).squeeze(1)};
  at::Tensor y = centred * (variance + kEpsilon).rsqrt() * scale.unsqueeze(1) + bias.unsqueeze(1);
  y = y.view_as(places).permute({0, 3, 1, 2});
  if (added.defined()) y = y + added;
  return at::clamp(y, least(activation), most(activation)).to(x.scalar_type());
}

}  // namespace

at::Tensor batch_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias,
                      Activation activation, const at::Tensor& added, Seen& seen) {
  if (!has_kernels(x)) return plain(x, scale, bias, activation, added, seen);
  const auto out =
      FusedBatchNorm::apply(x, scale, bias, added.defined() ? std::optional(added) : std::nullopt,
                            static_cast<std::int64_t>(activation));
  seen = {out[1], out[2]};
  return out[0];
}

}  // namespace train::models::together
