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
    context->saved_data["shape"] = table.sizes().vec();
    context->saved_data["none"] = none;
    std::vector<std::int64_t> shape = tokens.sizes().vec();
    shape.push_back(table.size(-1));
    const at::Tensor one = table.dim() == 3 ? table.select(0, 0) : table;
    return one.index_select(0, flat).view(shape);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const at::Tensor tokens = context->get_saved_variables()[0];
    const at::Tensor grad = grads[0].contiguous();
    const std::vector<std::int64_t> shape = context->saved_data["shape"].toIntVector();
    const std::int64_t learners = shape.size() == 3 ? shape[0] : 1;
    const at::Tensor grad_table = at::empty(shape, grad.options());
    cuda::token_table_gradient(
        {tokens.const_data_ptr<std::int64_t>(), learners, tokens.numel() / learners,
         grad.const_data_ptr<float>(), grad_table.size(-1), grad_table.size(-2),
         context->saved_data["none"].toInt(), grad_table.mutable_data_ptr<float>()},
        current_stream(grad));
    return {grad_table, {}, {}};
  }
};

}  // namespace

at::Tensor look_up(const at::Tensor& table, const at::Tensor& tokens, std::int64_t none) {
  if (table.is_cuda()) return LookUp::apply(table, tokens, none);
  if (table.dim() == 2) return at::embedding(table, tokens, none);
  std::vector<at::Tensor> parts = tokens.chunk(table.size(0));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = at::embedding(table.select(0, static_cast<std::int64_t>(i)), parts[i], none);
  }
  return at::cat(parts);
}

}  // namespace train::models::layers
