#pragma once

#include <memory>

#include "train/models/sequence.h"

namespace train::models::cuda {

/// On a GPU. The gradient of a batch replays a CUDA graph, of which there is one for each width of
/// rows. core::UsageError where libtorch was built without CUDA.
std::unique_ptr<SequenceEngine> make_sequence_engine(scalecom::core::Device device,
                                                     std::unique_ptr<SequenceModel> model,
                                                     SequenceEngine::Options options);

}  // namespace train::models::cuda
