#include "train/models/layers/lstm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <vector>

#include "train/models/current_stream.h"
#include "train/models/layers/cuda/lstm.h"
#include "train/models/layers/linear.h"

namespace train::models::layers {
namespace {

using cuda::LstmStep;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Pair = std::array<at::Tensor, 2>;  // one for each direction

/// What the way forth leaves for the way back, step by step in the order of each direction.
struct Trace {
  at::Tensor gates;  // open how far: (steps, 2, samples, 4 hidden)
  at::Tensor cells;  // before the first step, and after each: (1 + steps, 2, samples, hidden)
};

void forward(const LstmStep& step, const Pair& given, const at::Tensor& product, const Trace& trace,
             const at::Tensor& state, const at::Tensor& out) {
  const cuda::LstmForward pass{{given[0].const_data_ptr<float>(), given[1].const_data_ptr<float>()},
                               product.const_data_ptr<float>(),
                               trace.cells[step.step].const_data_ptr<float>(),
                               trace.gates[step.step].mutable_data_ptr<float>(),
                               trace.cells[step.step + 1].mutable_data_ptr<float>(),
                               state.mutable_data_ptr<float>(),
                               out.mutable_data_ptr<float>()};
  cuda::lstm_forward(step, pass, current_stream(out));
}

void backward(const LstmStep& step, const at::Tensor& slope, const Trace& trace,
              const at::Tensor& state_slope, const at::Tensor& cells_slope,
              const at::Tensor& gates_slope, const Pair& given_slopes) {
  const cuda::LstmBackward pass{
      slope.const_data_ptr<float>(),
      trace.gates[step.step].const_data_ptr<float>(),
      trace.cells[step.step].const_data_ptr<float>(),
      trace.cells[step.step + 1].const_data_ptr<float>(),
      state_slope.const_data_ptr<float>(),
      cells_slope.mutable_data_ptr<float>(),
      gates_slope.mutable_data_ptr<float>(),
      {given_slopes[0].mutable_data_ptr<float>(), given_slopes[1].mutable_data_ptr<float>()}};
  cuda::lstm_backward(step, pass, current_stream(slope));
}

/// Of both directions: (2, hidden, 4 hidden). All learners have the same.
at::Tensor stacked(const at::Tensor& forwards, const at::Tensor& backwards) {
  if (forwards.dim() == 2) return at::stack({forwards, backwards});
  return at::stack({forwards[0], backwards[0]});
}

/// What each step's product was made of, for one direction: (samples, steps, hidden).
at::Tensor states_before(const at::Tensor& out, int direction) {
  const std::int64_t hidden = out.size(2) / 2;
  const std::int64_t others = out.size(1) - 1;
  const at::Tensor own = out.narrow(2, direction * hidden, hidden);
  return direction == 0 ? at::constant_pad_nd(own.narrow(1, 0, others), {0, 0, 1, 0})
                        : at::constant_pad_nd(own.narrow(1, 1, others), {0, 0, 0, 1});
}

at::Tensor weight_slope(const at::Tensor& before, const at::Tensor& given_slope,
                        at::IntArrayRef shape) {
  if (shape.size() == 2) return at::mm(before.flatten(0, 1).t(), given_slope.flatten(0, 1));
  const at::Tensor of_learners = before.reshape({shape[0], -1, shape[1]});
  return at::bmm(of_learners.transpose(1, 2), given_slope.view({shape[0], -1, shape[2]}));
}

/// On a GPU: all that goes from step to step, both directions at once.
struct Recurrence : torch::autograd::Function<Recurrence> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given_forwards,
                            const at::Tensor& given_backwards, const at::Tensor& forwards,
                            const at::Tensor& backwards) {
    const Pair given{given_forwards.contiguous(), given_backwards.contiguous()};
    const at::Tensor weights = stacked(forwards, backwards);
    const at::TensorOptions options = given[0].options();
    LstmStep step{given[0].size(0), given[0].size(1), weights.size(1), 0};
    const Trace trace{at::empty({step.steps, 2, step.samples, 4 * step.hidden}, options),
                      at::empty({1 + step.steps, 2, step.samples, step.hidden}, options)};
    trace.cells[0].zero_();
    const at::Tensor out = at::empty({step.samples, step.steps, 2 * step.hidden}, options);
    const at::Tensor state = at::empty({2, step.samples, step.hidden}, options);
    at::Tensor product = at::zeros({2, step.samples, 4 * step.hidden}, options);
    for (; step.step < step.steps; ++step.step) {
      if (step.step > 0) at::bmm_out(product, state, weights);
      layers::forward(step, given, product, trace, state, out);
    }
    context->save_for_backward({trace.gates, trace.cells, out, weights});
    context->saved_data["shape"] = forwards.sizes().vec();
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const Trace trace{saved[0], saved[1]};
    const at::Tensor &out = saved[2], &weights = saved[3];
    const at::Tensor slope = grads[0].contiguous();
    LstmStep step{out.size(0), out.size(1), weights.size(1), out.size(1) - 1};
    const Pair given_slopes{at::empty({step.samples, step.steps, 4 * step.hidden}, out.options()),
                            at::empty({step.samples, step.steps, 4 * step.hidden}, out.options())};
    at::Tensor state_slope = at::zeros({2, step.samples, step.hidden}, out.options());
    const at::Tensor cells_slope = at::zeros_like(state_slope);
    const at::Tensor gates_slope = at::empty({2, step.samples, 4 * step.hidden}, out.options());
    for (; step.step >= 0; --step.step) {
      if (step.step < step.steps - 1) {
        at::bmm_out(state_slope, gates_slope, weights.transpose(1, 2));
      }
      layers::backward(step, slope, trace, state_slope, cells_slope, gates_slope, given_slopes);
    }
    const std::vector<std::int64_t> shape = context->saved_data["shape"].toIntVector();
    return {given_slopes[0], given_slopes[1],
            weight_slope(states_before(out, 0), given_slopes[0], shape),
            weight_slope(states_before(out, 1), given_slopes[1], shape)};
  }
};

/// On the host, where torch's own is faster, of one learner.
at::Tensor by_torch(const at::Tensor& x, const std::array<LstmWeights, 2>& weights) {
  std::vector<at::Tensor> given;
  for (const LstmWeights& one : weights) {
    given.insert(given.end(),
                 {one.input.t(), one.recurrent.t(), one.bias, at::zeros_like(one.bias)});
  }
  const at::Tensor start = at::zeros({2, x.size(0), weights[0].recurrent.size(0)}, x.options());
  const bool learns = at::GradMode::is_enabled();
  return std::get<0>(at::lstm(x, {start, start}, given, true, 1, 0.0, learns, true, true));
}

std::array<LstmWeights, 2> of_learner(const std::array<LstmWeights, 2>& all, std::int64_t learner) {
  const auto one = [&](const LstmWeights& weights) {
    return LstmWeights{weights.input[learner], weights.bias[learner], weights.recurrent[learner]};
  };
  return {one(all[0]), one(all[1])};
}

}  // namespace

at::Tensor lstm_both_ways(const at::Tensor& x, const std::array<LstmWeights, 2>& weights) {
  const auto& [forwards, backwards] = weights;
  if (x.is_cuda()) {
    return Recurrence::apply(linear(x, forwards.input, forwards.bias),
                             linear(x, backwards.input, backwards.bias), forwards.recurrent,
                             backwards.recurrent);
  }
  if (forwards.recurrent.dim() == 2) return by_torch(x, weights);
  std::vector<at::Tensor> parts = x.chunk(forwards.recurrent.size(0));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = by_torch(parts[i], of_learner(weights, static_cast<std::int64_t>(i)));
  }
  return at::cat(parts);
}

}  // namespace train::models::layers
