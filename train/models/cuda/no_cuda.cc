#include "scalecom/core/error.h"
#include "train/models/cuda/classifier.h"
#include "train/models/cuda/memory.h"
#include "train/models/cuda/sequence.h"
#include "train/models/current_stream.h"

namespace train::models {
namespace {

[[noreturn]] void refuse() {
  throw scalecom::core::UsageError(
      "[train] the libtorch of this build has no CUDA: build with one that has it, or train with "
      "--device cpu");
}

}  // namespace

scalecom::core::Stream current_stream(const at::Tensor& /*x*/) {
  refuse();
}

namespace cuda {

std::unique_ptr<Classifier> make_classifier(scalecom::core::Device /*device*/,
                                            std::unique_ptr<Model> /*model*/,
                                            const data::Samples& /*training*/,
                                            const data::Samples& /*test*/,
                                            const Classifier::Options& /*options*/) {
  refuse();
}

std::unique_ptr<SequenceEngine> make_sequence_engine(scalecom::core::Device /*device*/,
                                                     std::unique_ptr<SequenceModel> /*model*/,
                                                     SequenceEngine::Options /*options*/) {
  refuse();
}

std::int64_t peak_bytes(scalecom::core::Device /*device*/) {
  return 0;
}
void reset_peak(scalecom::core::Device /*device*/) {}

}  // namespace cuda
}  // namespace train::models
