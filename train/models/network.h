#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scalecom/layout/layout.h"

namespace train::models {

/// One layer of a network that runs from front to back; the last is linear. Layers with a name have
/// a bias and weights, the outputs' index the fastest: (height, width, inputs, outputs) or (inputs,
/// outputs). A chunk of them is then about one input, and the largest of it goes to the output that
/// needs it most; the other way round a chunk may lie in an output that is switched off.
struct Layer {
  enum class Kind : std::uint8_t { kConvolution, kLinear, kRelu, kReluPool };

  Kind kind = Kind::kRelu;
  std::string name;
  std::int64_t outputs = 0;  ///< channels of a convolution, features of a linear layer
  std::int64_t kernel = 0;   ///< odd; a convolution keeps height and width
};

Layer convolution(std::string name, std::int64_t outputs, std::int64_t kernel);
/// Takes all of its input as one row of features.
Layer linear(std::string name, std::int64_t outputs);
Layer relu();
/// The ReLU of the largest of each 2 x 2 places; height and width are even.
Layer relu_pool();

struct Shape {
  std::int64_t channels = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t elements() const { return channels * height * width; }
};

/// A classifier on libtorch: its weights, its loss (cross entropy) and its gradient. No torch type
/// shows, so that whoever trains one need not compile against torch.
///
/// gradient() and score() compute in the calling thread alone, and many threads may call them at
/// the same time as long as none writes the weights. The same weights and inputs give the same
/// bits.
class Network {
 public:
  struct Options {
    Shape input;
    std::vector<Layer> layers;
    std::int64_t batch = 1;  ///< a learner's mini-batch, for the tensors' FLOPs
    std::uint64_t seed = 0;  ///< of the first weights
  };

  struct Score {
    double loss = 0;  ///< summed over the samples
    std::int64_t correct = 0;
  };

  explicit Network(const Options& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const Shape& input() const;
  std::span<const scalecom::layout::Tensor> tensors() const;
  /// All weights, in the order of tensors(); what is written here is what the network computes
  /// with.
  std::span<float> weights();

  /// The mean loss over a batch, and its gradient in the order of tensors(). `inputs` are the
  /// samples one after the other; bits are the same for arrays of the same alignment, such as
  /// core::AlignedArray.
  double gradient(std::span<const float> inputs, std::span<const std::int64_t> labels,
                  std::span<float> gradient) const;
  Score score(std::span<const float> inputs, std::span<const std::int64_t> labels) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace train::models
