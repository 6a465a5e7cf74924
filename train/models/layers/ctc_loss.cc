#include "train/models/layers/ctc_loss.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <vector>

#include "train/models/current_stream.h"
#include "train/models/layers/cuda/ctc.h"

namespace train::models::layers {
namespace {

// The logarithm of nothing. Infinity would become NaN where two of them are compared.
constexpr double kNever = -1e30;

/// log(exp(a) + exp(b) + exp(c)).
at::Tensor log_sum(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  const at::Tensor top = at::maximum(at::maximum(a, b), c);
  return at::exp(a - top).add_(at::exp(b - top)).add_(at::exp(c - top)).log_().add_(top);
}

/// What the states of a sample are: nothing, its first label, nothing, its second, and so on.
struct States {
  explicit States(const at::Tensor& given) {
    const std::int64_t samples = given.size(0);
    const std::int64_t most = given.size(1);
    labels = at::zeros({samples, 2 * most + 1}, given.options());
    labels.slice(1, 1, at::nullopt, 2).copy_(given);
    const at::Tensor last = given.ne(0).sum(1, true).mul_(2);
    const at::Tensor places = at::arange(2 * most + 1, given.options()).unsqueeze(0);
    // It ends with its last label, or with nothing after it.
    ends = places.eq(last).logical_or_(places.eq(last - 1));
    // A label may follow another without nothing between them.
    skips = at::zeros_like(labels, at::kBool);
    skips.slice(1, 2).copy_(
        labels.slice(1, 2).ne(0).logical_and_(labels.slice(1, 2).ne(labels.slice(1, 0, -2))));
  }

  at::Tensor labels;  // (samples, states)
  at::Tensor ends;
  at::Tensor skips;  // from the state two before
};

at::Tensor as_cost(const at::Tensor& allowed) {
  return at::zeros_like(allowed, at::kFloat).masked_fill_(allowed.logical_not(), kNever);
}

/// Both ways through the steps at once: (steps, 2, samples, states), the probabilities of all
/// beginnings that end in a state, and of all endings that begin in it, its own step included.
at::Tensor walk(const at::Tensor& emissions, const States& states) {
  const std::int64_t steps = emissions.size(1);
  const std::int64_t width = emissions.size(2);
  // The way back goes through the states from the last to the first, so that a state's forerunners
  // lie to its left in both. A skip from s to s + 2 is seen at s then.
  const at::Tensor back_skips = at::constant_pad_nd(states.skips.slice(1, 2), {0, 2}).flip(1);
  const at::Tensor skip_cost = as_cost(at::stack({states.skips, back_skips}));
  const at::Tensor begins = at::zeros_like(states.ends);
  begins.slice(1, 0, 2).fill_(true);
  const at::Tensor start_cost = as_cost(at::stack({begins, states.ends.flip(1)}));
  const at::Tensor both =
      at::stack({emissions, emissions.flip({1, 2})}).permute({2, 0, 1, 3}).contiguous();

  std::vector<at::Tensor> all{start_cost + both[0]};
  for (std::int64_t step = 1; step < steps; ++step) {
    const at::Tensor padded = at::constant_pad_nd(all.back(), {2, 0}, kNever);
    const at::Tensor here = log_sum(padded.narrow(2, 2, width), padded.narrow(2, 1, width),
                                    padded.narrow(2, 0, width) + skip_cost);
    all.push_back(here + both[step]);
  }
  return at::stack(all);
}

struct LossesAndSlopes {
  at::Tensor losses;  // (samples)
  at::Tensor slopes;  // by the logits: (samples, steps, classes)
};

LossesAndSlopes by_torch(const at::Tensor& log_probabilities, const at::Tensor& labels) {
  const States states(labels);
  // Which class a state says: (samples, states, classes).
  const at::Tensor classes = at::arange(log_probabilities.size(2), labels.options());
  const at::Tensor says = states.labels.unsqueeze(2).eq(classes).to(at::kFloat);
  const at::Tensor emissions = log_probabilities.matmul(says.transpose(1, 2));
  const at::Tensor ways = walk(emissions, states);
  const at::Tensor forth = ways.select(1, 0).permute({1, 0, 2});
  const at::Tensor back = ways.select(1, 1).permute({1, 0, 2}).flip({1, 2});

  const at::Tensor total = at::logsumexp(forth.select(1, -1) + as_cost(states.ends), {1});
  // How probable it is to be in a state at a step, given the labels.
  const at::Tensor share = at::exp(forth + back - emissions - total.view({-1, 1, 1}));
  return {-total, log_probabilities.exp() - share.matmul(says)};
}

LossesAndSlopes by_kernel(const at::Tensor& log_probabilities, const at::Tensor& given) {
  const at::Tensor labels = given.contiguous();
  const cuda::Ctc shape{log_probabilities.size(0), log_probabilities.size(1),
                        log_probabilities.size(2), labels.size(1)};
  const at::TensorOptions options = log_probabilities.options();
  const LossesAndSlopes out{at::empty({shape.samples}, options), at::empty_like(log_probabilities)};
  const at::Tensor scratch = at::empty({shape.samples, shape.steps, shape.states()}, options);
  cuda::ctc(shape,
            {log_probabilities.const_data_ptr<float>(), labels.const_data_ptr<std::int64_t>(),
             scratch.mutable_data_ptr<float>(), out.losses.mutable_data_ptr<float>(),
             out.slopes.mutable_data_ptr<float>()},
            current_stream(log_probabilities));
  return out;
}

struct CtcLoss : torch::autograd::Function<CtcLoss> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& labels) {
    const at::Tensor log_probabilities = at::log_softmax(logits, 2).contiguous();
    const LossesAndSlopes out = logits.is_cuda() ? by_kernel(log_probabilities, labels)
                                                 : by_torch(log_probabilities, labels);
    context->save_for_backward({out.slopes});
    return out.losses;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const at::Tensor slope = context->get_saved_variables()[0];
    return {slope * grads[0].view({-1, 1, 1}), at::Tensor()};
  }
};

}  // namespace

at::Tensor ctc_loss(const at::Tensor& logits, const at::Tensor& labels) {
  return CtcLoss::apply(logits, labels);
}

}  // namespace train::models::layers
