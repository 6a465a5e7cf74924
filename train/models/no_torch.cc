#include "scalecom/core/error.h"
#include "train/models/classifier.h"
#include "train/models/cuda/memory.h"
#include "train/models/mobilenet.h"
#include "train/models/network.h"
#include "train/models/recogniser.h"
#include "train/models/resnet.h"
#include "train/models/sequence.h"
#include "train/models/transformer.h"

namespace train::models {
namespace {

[[noreturn]] void refuse() {
  throw scalecom::core::UsageError(
      "[train] this build has no libtorch, so no task can be trained: build with "
      "-DSCALECOM_PROGRAM=ON");
}

}  // namespace

Layer convolution(std::string /*name*/, std::int64_t /*outputs*/, std::int64_t /*kernel*/) {
  refuse();
}
Layer linear(std::string /*name*/, std::int64_t /*outputs*/) {
  refuse();
}
Layer relu() {
  refuse();
}
Layer relu_pool() {
  refuse();
}
std::unique_ptr<Model> make_network(const NetworkOptions& /*options*/) {
  refuse();
}
std::unique_ptr<Model> make_resnet(const ResNetOptions& /*options*/) {
  refuse();
}
std::unique_ptr<Model> make_mobilenet(const MobileNetOptions& /*options*/) {
  refuse();
}
std::unique_ptr<SequenceModel> make_recogniser(const RecogniserOptions& /*options*/) {
  refuse();
}
std::unique_ptr<SequenceModel> make_transformer(const TransformerOptions& /*options*/) {
  refuse();
}
// With torch's types elsewhere; here nobody can make one.
struct SequenceModel::Numbers {};
SequenceModel::Numbers SequenceModel::answer(const Pass& /*pass*/) const {
  refuse();
}
std::vector<float> TransformerOptions::positions() const {
  refuse();
}

std::unique_ptr<Classifier> make_classifier(scalecom::core::Device /*device*/,
                                            std::unique_ptr<Model> /*model*/,
                                            data::Samples /*training*/, data::Samples /*test*/,
                                            const Classifier::Options& /*options*/) {
  refuse();
}
std::unique_ptr<SequenceEngine> make_sequence_engine(scalecom::core::Device /*device*/,
                                                     std::unique_ptr<SequenceModel> /*model*/,
                                                     SequenceEngine::Options /*options*/) {
  refuse();
}

namespace cuda {

std::int64_t peak_bytes(scalecom::core::Device /*device*/) {
  return 0;
}
void reset_peak(scalecom::core::Device /*device*/) {}

}  // namespace cuda
}  // namespace train::models
