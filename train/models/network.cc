#include "train/models/network.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "train/models/pass.h"
#include "train/models/relu_pool.h"

namespace train::models {
namespace {

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

/// The same in torch's operations, for a GPU.
at::Tensor device_relu_pool(const at::Tensor& x) {
  return at::relu(x.unflatten(3, {-1, 2}).unflatten(2, {-1, 2}).amax({3, 5}));
}

class Network final : public Model {
 public:
  explicit Network(const NetworkOptions& options)
      : Model(options.input, options.batch), layers_(options.layers) {
    Shape shape = options.input;
    for (const Layer& layer : layers_) shape = describe(layer, shape);
  }

  void forward(Pass& pass) const override {
    at::Tensor& x = pass.x;
    auto next = pass.parameters.begin();
    for (const Layer& layer : layers_) {
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
          x = x.is_cuda() ? device_relu_pool(x) : ReluPool::apply(x);
          break;
      }
    }
  }

 private:
  /// Adds the tensors of a layer that takes `in`; returns the shape of what it gives.
  Shape describe(const Layer& layer, const Shape& in) {
    const std::int64_t positions = in.height * in.width;
    switch (layer.kind) {
      case Layer::Kind::kConvolution:
        add_convolution(layer.name, layer.kernel, in.channels, layer.outputs, positions);
        add_bias(layer.name, layer.outputs, positions);
        return {layer.outputs, in.height, in.width};
      case Layer::Kind::kLinear:
        add_linear(layer.name, in.elements(), layer.outputs);
        add_bias(layer.name, layer.outputs, 1);
        return {layer.outputs};
      case Layer::Kind::kReluPool:
        return {in.channels, in.height / 2, in.width / 2};
      case Layer::Kind::kRelu:
        break;
    }
    return in;
  }

  std::vector<Layer> layers_;
};

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

std::unique_ptr<Model> make_network(const NetworkOptions& options) {
  return std::make_unique<Network>(options);
}

}  // namespace train::models
