#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "train/models/model.h"

namespace train::models {

/// Residual networks for small pictures (He et al., 2016): a 3 x 3 convolution, stages of basic
/// blocks, of which each but the first halves height and width, the mean over places, and a linear
/// layer. Batch norm follows every convolution. The defaults are ResNet-18 for 32 x 32: 11.2
/// million weights; blocks of 3, 4, 6 and 3 make ResNet-34.
struct ResNetOptions {
  Shape input{3, 32, 32};
  std::vector<std::int64_t> widths{64, 128, 256, 512};  ///< channels, by stage
  std::vector<int> blocks{2, 2, 2, 2};                  ///< as many, of each stage
  std::int64_t classes = 10;
  std::int64_t batch = 1;  ///< a learner's mini-batch
};

std::unique_ptr<Model> make_resnet(const ResNetOptions& options);

}  // namespace train::models
