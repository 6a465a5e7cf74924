#pragma once

#include <memory>

#include "train/models/classifier.h"

namespace train::models::cuda {

/// On a GPU. Convolutions are computed in TF32, by algorithms whose bits do not change from run to
/// run. A gradient of a batch of the usual size replays a CUDA graph that is captured here.
/// core::UsageError where libtorch was built without CUDA.
std::unique_ptr<Classifier> make_classifier(scalecom::core::Device device,
                                            std::unique_ptr<Model> model,
                                            const data::Samples& training,
                                            const data::Samples& test,
                                            const Classifier::Options& options);

}  // namespace train::models::cuda
