#include "train/models/layers/token_table.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "train/models/current_stream.h"
#include "train/models/layers/cuda/token_table.h"

namespace train::models::layers {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LookUp : torch::autograd::Function<LookUp> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& table,
                            const at::Tensor& tokens, std::int64_t none) {
    const at::Tensor flat = tokens.contiguous().flatten();
    context->save_for_backward({flat});
    context->saved_data["rows"] = table.size(0);
    context->saved_data["none"] = none;
    std::vector<std::int64_t> shape = tokens.sizes().vec();
    shape.push_back(table.size(1));
    return table.index_select(0, flat).view(shape);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const at::Tensor tokens = context->get_saved_variables()[0];
    const at::Tensor grad = grads[0].contiguous();
    const std::int64_t rows = context->saved_data["rows"].toInt();
    const std::int64_t width = grad.size(-1);
    const at::Tensor grad_table = at::empty({rows, width}, grad.options());
    cuda::token_table_gradient(
        {tokens.const_data_ptr<std::int64_t>(), tokens.numel(), grad.const_data_ptr<float>(), width,
         rows, context->saved_data["none"].toInt(), grad_table.mutable_data_ptr<float>()},
        current_stream(grad));
    return {grad_table, {}, {}};
  }
};

}  // namespace

at::Tensor look_up(const at::Tensor& table, const at::Tensor& tokens, std::int64_t none) {
  if (!table.is_cuda()) return at::embedding(table, tokens, none);
  return LookUp::apply(table, tokens, none);
}

}  // namespace train::models::layers
