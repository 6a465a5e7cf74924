#include "train/models/sequence.h"

#include <utility>

#include "train/models/cuda/sequence.h"

namespace train::models {

void SequenceModel::add_linear(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                               double bound, double positions) {
  // A multiplication and an addition for each weight, place and sample.
  parameters_.add_noise({name + ".weight", {inputs, outputs}, 2 * positions},
                        static_cast<float>(bound));
  parameters_.add_constant({name + ".bias", {outputs}, 2 * positions}, 0);
}

std::unique_ptr<SequenceEngine> make_sequence_engine(scalecom::core::Device device,
                                                     std::unique_ptr<SequenceModel> model,
                                                     SequenceEngine::Options options) {
  if (device.is_cuda()) {
    return cuda::make_sequence_engine(device, std::move(model), std::move(options));
  }
  return make_host_sequence_engine(std::move(model), std::move(options));
}

}  // namespace train::models
