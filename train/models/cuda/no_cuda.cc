#include "scalecom/core/error.h"
#include "train/models/cuda/classifier.h"

namespace train::models::cuda {

std::unique_ptr<Classifier> make_classifier(scalecom::core::Device /*device*/,
                                            std::unique_ptr<Model> /*model*/,
                                            const data::Samples& /*training*/,
                                            const data::Samples& /*test*/,
                                            const Classifier::Options& /*options*/) {
  throw scalecom::core::UsageError(
      "[train] the libtorch of this build has no CUDA: build with one that has it, or train with "
      "--device cpu");
}

}  // namespace train::models::cuda
