#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "train/models/model.h"

namespace train::models {

/// MobileNetV2 for small pictures (Sandler et al., 2018): a 3 x 3 convolution, stages of inverted
/// residual blocks, a 1 x 1 convolution, the mean over places, and a linear layer. Batch norm
/// follows every convolution. The defaults are the paper's network, but for the strides of the stem
/// and the second stage, which are 1, as 32 x 32 places cannot be halved five times: 2.2 million
/// weights.
struct MobileNetOptions {
  struct Stage {
    std::int64_t expansion = 6;  ///< channels inside a block, for each that goes in
    std::int64_t outputs = 16;
    int blocks = 1;
    std::int64_t stride = 1;  ///< of the first block
  };

  Shape input{3, 32, 32};
  std::int64_t stem = 32;  ///< channels
  std::vector<Stage> stages{{1, 16, 1, 1}, {6, 24, 2, 1},  {6, 32, 3, 2}, {6, 64, 4, 2},
                            {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  std::int64_t head = 1280;  ///< channels before the mean
  std::int64_t classes = 10;
  std::int64_t batch = 1;  ///< a learner's mini-batch
};

std::unique_ptr<Model> make_mobilenet(const MobileNetOptions& options);

}  // namespace train::models
