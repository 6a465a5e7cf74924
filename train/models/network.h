#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/models/model.h"

namespace train::models {

/// One layer of a network that runs from front to back; the last is linear. Layers with a name have
/// weights and a bias.
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

struct NetworkOptions {
  Shape input;
  std::vector<Layer> layers;
  std::int64_t batch = 1;  ///< a learner's mini-batch
};

std::unique_ptr<Model> make_network(const NetworkOptions& options);

}  // namespace train::models
