// The one file that includes torch: its headers take half a minute.
#include "train/models/network.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "scalecom/core/aligned_array.h"
#include "scalecom/core/hash.h"
#include "train/models/relu_pool.h"

namespace train::models {
namespace {

namespace core = scalecom::core;
using scalecom::layout::Tensor;

/// A number in [-1, 1) for every (seed, index).
float noise(std::uint64_t seed, std::int64_t index) {
  const std::uint64_t bits = core::combine(seed, static_cast<std::uint64_t>(index));
  return static_cast<float>(static_cast<double>(bits >> 40) / (1 << 23) - 1);
}

/// `data` as a tensor that shares its memory. Torch has no view of constant memory; nothing here
/// writes to an input.
template <typename T>
at::Tensor view(std::span<const T> data, at::IntArrayRef shape, at::ScalarType type) {
  return at::from_blob(const_cast<T*>(data.data()), shape, type);
}

/// relu_pool() with its gradient. Torch's own pooling takes as long as the convolutions beside it.
struct ReluPool : torch::autograd::Function<ReluPool> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& given) {
    const at::Tensor x = given.contiguous(at::MemoryFormat::ChannelsLast);
    const std::int64_t height = x.size(2) / 2;
    const std::int64_t width = x.size(3) / 2;
    at::Tensor out = at::empty({x.size(0), x.size(1), height, width},
                               x.options().memory_format(at::MemoryFormat::ChannelsLast));
    const at::Tensor source = at::empty_like(out, at::kInt);
    relu_pool(x.const_data_ptr<float>(), x.size(0) * height, width, x.size(1),
              out.mutable_data_ptr<float>(), source.mutable_data_ptr<Source>());
    context->save_for_backward({source});
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const at::Tensor source = context->get_saved_variables()[0];
    const at::Tensor grad = grads[0].contiguous(at::MemoryFormat::ChannelsLast);
    const std::int64_t height = grad.size(2);
    const std::int64_t width = grad.size(3);
    const at::Tensor out = at::empty({grad.size(0), grad.size(1), 2 * height, 2 * width},
                                     grad.options().memory_format(at::MemoryFormat::ChannelsLast));
    relu_pool_backward(grad.const_data_ptr<float>(), source.const_data_ptr<Source>(),
                       grad.size(0) * height, width, grad.size(1), out.mutable_data_ptr<float>());
    return {out};
  }
};

/// Each sample as one row, a place's channels after the other's.
at::Tensor rows(const at::Tensor& x) {
  return x.dim() == 4 ? x.permute({0, 2, 3, 1}).flatten(1) : x;
}

/// Keeps torch to the calling thread. OpenMP has that number for each thread, so each asks once.
void compute_alone() {
  thread_local bool asked = false;
  if (asked) return;
  at::set_num_threads(1);
  asked = true;
}

}  // namespace

Layer convolution(std::string name, std::int64_t outputs, std::int64_t kernel) {
  return {Layer::Kind::kConvolution, std::move(name), outputs, kernel};
}

Layer linear(std::string name, std::int64_t outputs) {
  return {Layer::Kind::kLinear, std::move(name), outputs, 0};
}

Layer relu() {
  return {};
}

Layer relu_pool() {
  return {Layer::Kind::kReluPool, {}, 0, 0};
}

struct Network::Impl {
  explicit Impl(const Options& given) : options(given) {
    at::globalContext().setDeterministicAlgorithms(true, false);
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    Shape shape = options.input;
    for (const Layer& layer : options.layers) shape = describe(layer, shape);
    std::int64_t elements = 0;
    for (const Tensor& tensor : tensors) elements += tensor.elements();
    weights = core::AlignedArray<float>(elements);
    initialise();
    bind();
  }

  /// Adds the tensors of a layer that takes `in`; returns the shape of what it gives.
  Shape describe(const Layer& layer, const Shape& in) {
    switch (layer.kind) {
      case Layer::Kind::kConvolution:
        add(layer, {layer.kernel, layer.kernel, in.channels, layer.outputs}, in.height * in.width);
        return {layer.outputs, in.height, in.width};
      case Layer::Kind::kLinear:
        add(layer, {in.elements(), layer.outputs}, 1);
        return {layer.outputs};
      case Layer::Kind::kReluPool:
        return {in.channels, in.height / 2, in.width / 2};
      case Layer::Kind::kRelu:
        break;
    }
    return in;
  }

  void add(const Layer& layer, std::vector<std::int64_t> shape, std::int64_t positions) {
    // A multiplication and an addition for each weight, output position and sample.
    const auto flops = static_cast<double>(2 * positions * options.batch);
    tensors.push_back({layer.name + ".weight", std::move(shape), flops});
    tensors.push_back({layer.name + ".bias", {layer.outputs}, flops});
  }

  /// He's uniform initialisation, whose variance a ReLU keeps; biases are 0.
  void initialise() {
    std::int64_t begin = 0;
    for (const Tensor& tensor : tensors) {
      if (tensor.shape.size() > 1) {
        const std::int64_t fan_in = tensor.elements() / tensor.shape.back();
        const auto bound = static_cast<float>(std::sqrt(6 / static_cast<double>(fan_in)));
        const std::uint64_t seed = core::combine(options.seed, core::hash(tensor.name));
        for (std::int64_t i = 0; i < tensor.elements(); ++i) {
          weights[begin + i] = bound * noise(seed, i);
        }
      }
      begin += tensor.elements();
    }
  }

  /// Makes the parameters views of the flat weights.
  void bind() {
    float* at = weights.data();
    for (const Tensor& tensor : tensors) {
      auto parameter = at::from_blob(at, tensor.shape, at::kFloat);
      parameter.set_requires_grad(true);
      parameters.push_back(std::move(parameter));
      at += tensor.elements();
    }
  }

  at::Tensor forward(std::span<const float> inputs, std::int64_t samples) const {
    const Shape& in = options.input;
    at::Tensor x = view(inputs, {samples, in.channels, in.height, in.width}, at::kFloat)
                       .contiguous(at::MemoryFormat::ChannelsLast);
    auto next = parameters.begin();
    for (const Layer& layer : options.layers) {
      switch (layer.kind) {
        case Layer::Kind::kConvolution:
          x = at::conv2d(x, next[0].permute({3, 2, 0, 1}), next[1], 1, layer.kernel / 2);
          next += 2;
          break;
        case Layer::Kind::kLinear:
          x = at::addmm(next[1], rows(x), next[0]);
          next += 2;
          break;
        case Layer::Kind::kRelu:
          x = at::relu(x);
          break;
        case Layer::Kind::kReluPool:
          x = ReluPool::apply(x);
          break;
      }
    }
    return x;
  }

  Options options;
  std::vector<Tensor> tensors;
  core::AlignedArray<float> weights;
  std::vector<at::Tensor> parameters;
};

Network::Network(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
Network::~Network() = default;

const Shape& Network::input() const {
  return impl_->options.input;
}

std::span<const Tensor> Network::tensors() const {
  return impl_->tensors;
}

std::span<float> Network::weights() {
  return {impl_->weights.data(), static_cast<std::size_t>(impl_->weights.size())};
}

double Network::gradient(std::span<const float> inputs, std::span<const std::int64_t> labels,
                         std::span<float> gradient) const {
  compute_alone();
  const auto samples = static_cast<std::int64_t>(labels.size());
  const at::Tensor loss =
      at::cross_entropy_loss(impl_->forward(inputs, samples), view(labels, {samples}, at::kLong));
  const auto parts = torch::autograd::grad({loss}, impl_->parameters);
  float* to = gradient.data();
  for (const at::Tensor& part : parts) {
    const at::Tensor flat = part.contiguous();
    std::memcpy(to, flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.nbytes()));
    to += flat.numel();
  }
  return loss.item<double>();
}

Network::Score Network::score(std::span<const float> inputs,
                              std::span<const std::int64_t> labels) const {
  compute_alone();
  const at::NoGradGuard no_gradient;
  const auto samples = static_cast<std::int64_t>(labels.size());
  const at::Tensor outputs = impl_->forward(inputs, samples);
  const at::Tensor wanted = view(labels, {samples}, at::kLong);
  const at::Tensor loss = at::cross_entropy_loss(outputs, wanted, {}, at::Reduction::Sum);
  return {loss.item<double>(), outputs.argmax(1).eq(wanted).sum().item<std::int64_t>()};
}

}  // namespace train::models
