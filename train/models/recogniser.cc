#include "train/models/recogniser.h"

#include <ATen/ATen.h>

#include <cmath>

#include "scalecom/core/text.h"
#include "train/models/layers/ctc_loss.h"
#include "train/models/layers/linear.h"
#include "train/models/layers/lstm.h"
#include "train/models/sequence_pass.h"

namespace train::models {
namespace {

namespace core = scalecom::core;

constexpr std::int64_t kGates = 4;

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
    const at::Tensor losses = layers::ctc_loss(logits(pass), labels(pass));
    return {losses.view({pass.learners, -1}).mean(1)};
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
    at::Tensor x = pass.table.index_select(0, indices)
                       .view({samples, options_.steps(), options_.together * options_.bands});
    const at::Tensor* next = pass.parameters.data();
    for (std::int64_t layer = 0; layer < options_.layers; ++layer, next += 6) {
      x = layers::lstm_both_ways(x, {{{next[0], next[1], next[2]}, {next[3], next[4], next[5]}}});
    }
    return layers::linear(x, next[0], next[1]);
  }

  RecogniserOptions options_;
};

}  // namespace

std::unique_ptr<SequenceModel> make_recogniser(const RecogniserOptions& options) {
  return std::make_unique<Recogniser>(options);
}

}  // namespace train::models
