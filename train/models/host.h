#pragma once

#include <memory>

#include "train/models/classifier.h"

namespace train::models {

std::unique_ptr<Classifier> make_host_classifier(std::unique_ptr<Model> model,
                                                 data::Samples training, data::Samples test,
                                                 const Classifier::Options& options);

}  // namespace train::models
