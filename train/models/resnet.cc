#include "train/models/resnet.h"

#include <string>

#include "train/models/walk.h"

namespace train::models {
namespace {

class ResNet final : public Model {
 public:
  explicit ResNet(const ResNetOptions& options) : Model(options.input, options.batch) {
    std::int64_t positions = options.input.height * options.input.width;
    std::int64_t inputs = options.widths.at(0);
    add_convolution("stem.conv", 3, options.input.channels, inputs, positions);
    add_batch_norm("stem.norm", inputs);
    for (std::size_t stage = 0; stage < options.widths.size(); ++stage) {
      for (int block = 0; block < options.blocks.at(stage); ++block) {
        const Block shape{inputs, options.widths[stage], stage > 0 && block == 0 ? 2 : 1};
        positions /= shape.stride * shape.stride;
        describe(std::to_string(stage + 1) + "." + std::to_string(block + 1), shape, positions);
        inputs = shape.outputs;
      }
    }
    add_linear("fc", inputs, options.classes);
    add_bias("fc", options.classes, 1);
  }

  bool takes_learners() const override { return true; }

  void forward(Pass& pass) const override {
    Walk walk(pass);
    at::Tensor x = walk.convolution(pass.x, 1);
    x = walk.batch_norm(x, Activation::kRelu);
    for (const Block& block : blocks_) x = run(block, walk, x);
    pass.x = walk.classify(x);
  }

 private:
  struct Block {
    std::int64_t inputs;
    std::int64_t outputs;
    std::int64_t stride;
    bool is_shortcut_plain() const { return stride == 1 && inputs == outputs; }
  };

  void describe(const std::string& place, const Block& block, std::int64_t positions) {
    const std::string name = "stage" + place;
    add_convolution(name + ".conv1", 3, block.inputs, block.outputs, positions);
    add_batch_norm(name + ".norm1", block.outputs);
    add_convolution(name + ".conv2", 3, block.outputs, block.outputs, positions);
    // A block begins as its shortcut alone (Goyal et al., 2017): large batches, whose learning rate
    // rises fast, diverge in their first steps otherwise.
    add_batch_norm(name + ".norm2", block.outputs, 0);
    if (!block.is_shortcut_plain()) {
      add_convolution(name + ".shortcut.conv", 1, block.inputs, block.outputs, positions);
      add_batch_norm(name + ".shortcut.norm", block.outputs);
    }
    blocks_.push_back(block);
  }

  static at::Tensor run(const Block& block, Walk& walk, const at::Tensor& x) {
    at::Tensor y = walk.convolution(x, block.stride);
    y = walk.batch_norm(y, Activation::kRelu);
    y = walk.convolution(y, 1);
    if (block.is_shortcut_plain()) return walk.batch_norm(y, Activation::kRelu, x);
    y = walk.batch_norm(y);
    const at::Tensor shortcut = walk.convolution(x, block.stride);
    return walk.batch_norm(shortcut, Activation::kRelu, y);
  }

  std::vector<Block> blocks_;
};

}  // namespace

std::unique_ptr<Model> make_resnet(const ResNetOptions& options) {
  return std::make_unique<ResNet>(options);
}

}  // namespace train::models
