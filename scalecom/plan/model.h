#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scalecom/layout/layout.h"

namespace scalecom::plan {

/// Part of a model whose gradients become ready together.
struct Layer {
  std::string name;
  std::vector<layout::Tensor> tensors;  ///< their flops_per_gradient is not looked at
  double forward_flops = 0;  ///< of one sample, a multiplication and an addition being two
  /// Measured with the model's own batch; 0 where the model was not measured.
  double forward_seconds = 0;
  double backward_seconds = 0;

  std::int64_t elements() const;
};

/// A model as its step is planned: layers in the order of the forward pass.
struct Model {
  std::string name;
  std::string sample;  ///< what one of a batch is: "an image of 224 x 224"
  std::vector<Layer> layers;
  /// Of a model that was measured: samples of a step, and seconds of it outside both passes.
  std::int64_t measured_batch = 0;
  double other_seconds = 0;

  bool measured() const { return measured_batch > 0; }
  std::int64_t elements() const;
  double forward_flops() const;
};

/// resnet18, resnet34, resnet50, mobilenetv2, transformer-base, bert-base, gpt2, llama-7b.
std::vector<std::string> built_in_models();
/// UsageError for another name.
Model built_in_model(const std::string& name);

/// A model as a file describes it: docs/plan.md. Exactly one of its two forms, with FLOPs or with
/// measured times, for all layers alike. UsageError, naming the field, for what is missing,
/// unknown, no number, or beyond what any model has.
Model parse_model(std::string_view json);
/// UsageError for a file that is not there, is too long, or is no model.
Model read_model(const std::filesystem::path& path);

}  // namespace scalecom::plan
