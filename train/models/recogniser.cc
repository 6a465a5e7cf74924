#include "train/models/recogniser.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <vector>

#include "scalecom/core/text.h"
#include "train/models/layers/ctc_loss.h"
#include "train/models/sequence_pass.h"

namespace train::models {
namespace {

namespace core = scalecom::core;

constexpr std::int64_t kGates = 4;

class NoWarnings final : public c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

class Recogniser final : public SequenceModel {
 public:
  explicit Recogniser(const RecogniserOptions& options) : options_(options) {
    const double bound = 1 / std::sqrt(static_cast<double>(options.hidden));
    const auto positions = static_cast<double>(options.steps() * options.batch);
    std::int64_t inputs = options.bands * options.together;
    for (std::int64_t layer = 1; layer <= options.layers; ++layer) {
      for (const char* direction : {"forward", "backward"}) {
        const std::string name = core::concat("lstm", layer, ".", direction);
        const std::int64_t outputs = kGates * options.hidden;
        add_linear(name + ".input", inputs, outputs, bound, positions);
        parameters_.add_noise(
            {name + ".recurrent.weight", {options.hidden, outputs}, 2 * positions},
            static_cast<float>(bound));
      }
      inputs = 2 * options.hidden;
    }
    add_linear("fc", inputs, options.classes, bound / std::sqrt(2.0), positions);
  }

  Numbers loss(const Pass& pass) const override {
    return {layers::ctc_loss(logits(pass), labels(pass)).mean(0, true)};
  }

  Numbers score(const Pass& pass) const override {
    const at::Tensor out = logits(pass);
    const at::Tensor losses = layers::ctc_loss(out, labels(pass));
    return {at::cat({losses.unsqueeze(1), at::log_softmax(out, 2).flatten(1)}, 1)};
  }

 private:
  at::Tensor labels(const Pass& pass) const {
    return pass.rows.narrow(1, options_.frames, options_.labels);
  }

  at::Tensor logits(const Pass& pass) const {
    const std::int64_t samples = pass.rows.size(0);
    const at::Tensor indices = pass.rows.narrow(1, 0, options_.frames).flatten();
    const at::Tensor x = pass.table.index_select(0, indices)
                             .view({samples, options_.steps(), options_.together * options_.bands});
    const at::Tensor* next = pass.parameters.data();
    std::vector<at::Tensor> weights;
    const at::Tensor no_bias = at::zeros({kGates * options_.hidden}, x.options());
    for (std::int64_t i = 0; i < 2 * options_.layers; ++i, next += 3) {
      // cuDNN copies weights as they lie in memory.
      weights.insert(weights.end(),
                     {next[0].t().contiguous(), next[2].t().contiguous(), next[1], no_bias});
    }
    const at::Tensor start =
        at::zeros({2 * options_.layers, samples, options_.hidden}, x.options());
    const bool learns = pass.noise.defined();
    // It would say in every call that the weights are copied, which they are.
    NoWarnings none;
    const c10::WarningUtils::WarningHandlerGuard guard(&none);
    const at::Tensor out = std::get<0>(
        at::lstm(x, {start, start}, weights, true, options_.layers, 0.0, learns, true, true));
    return at::matmul(out, next[0]) + next[1];
  }

  RecogniserOptions options_;
};

}  // namespace

std::unique_ptr<SequenceModel> make_recogniser(const RecogniserOptions& options) {
  return std::make_unique<Recogniser>(options);
}

}  // namespace train::models
