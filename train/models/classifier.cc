#include "train/models/classifier.h"

#include <utility>

#include "train/models/cuda/classifier.h"
#include "train/models/host.h"

namespace train::models {

std::unique_ptr<Classifier> make_classifier(scalecom::core::Device device,
                                            std::unique_ptr<Model> model, data::Samples training,
                                            data::Samples test,
                                            const Classifier::Options& options) {
  if (device.is_cuda()) {
    return cuda::make_classifier(device, std::move(model), training, test, options);
  }
  return make_host_classifier(std::move(model), std::move(training), std::move(test), options);
}

}  // namespace train::models
