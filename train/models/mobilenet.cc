#include "train/models/mobilenet.h"

#include <string>

#include "train/models/walk.h"

namespace train::models {
namespace {

class MobileNet final : public Model {
 public:
  explicit MobileNet(const MobileNetOptions& options) : Model(options.input, options.batch) {
    std::int64_t positions = options.input.height * options.input.width;
    std::int64_t inputs = options.stem;
    add_convolution("stem.conv", 3, options.input.channels, inputs, positions);
    add_batch_norm("stem.norm", inputs);
    int number = 0;
    for (const MobileNetOptions::Stage& stage : options.stages) {
      for (int i = 0; i < stage.blocks; ++i) {
        const Block block{inputs, stage.expansion * inputs, stage.outputs,
                          i == 0 ? stage.stride : 1};
        positions = describe("block" + std::to_string(++number), block, positions);
        inputs = block.outputs;
      }
    }
    add_convolution("head.conv", 1, inputs, options.head, positions);
    add_batch_norm("head.norm", options.head);
    add_linear("fc", options.head, options.classes);
    add_bias("fc", options.classes, 1);
  }

  bool takes_learners() const override { return true; }

  void forward(Pass& pass) const override {
    Walk walk(pass);
    at::Tensor x = walk.batch_norm(walk.convolution(pass.x, 1), Activation::kRelu6);
    for (const Block& block : blocks_) x = run(block, walk, x);
    x = walk.batch_norm(walk.convolution(x, 1), Activation::kRelu6);
    pass.x = walk.classify(x);
  }

 private:
  struct Block {
    std::int64_t inputs;
    std::int64_t inside;
    std::int64_t outputs;
    std::int64_t stride;
    bool expands() const { return inside != inputs; }
    bool has_shortcut() const { return stride == 1 && inputs == outputs; }
  };

  /// Adds the tensors of a block whose input has so many places; returns those of its output.
  std::int64_t describe(const std::string& name, const Block& block, std::int64_t positions) {
    if (block.expands()) {
      add_convolution(name + ".expand.conv", 1, block.inputs, block.inside, positions);
      add_batch_norm(name + ".expand.norm", block.inside);
    }
    positions /= block.stride * block.stride;
    add_convolution(name + ".depth.conv", 3, 1, block.inside, positions);
    add_batch_norm(name + ".depth.norm", block.inside);
    add_convolution(name + ".project.conv", 1, block.inside, block.outputs, positions);
    // A block begins as its shortcut alone, as in ResNet.
    add_batch_norm(name + ".project.norm", block.outputs, block.has_shortcut() ? 0 : 1);
    blocks_.push_back(block);
    return positions;
  }

  static at::Tensor run(const Block& block, Walk& walk, const at::Tensor& x) {
    at::Tensor y = x;
    if (block.expands()) y = walk.batch_norm(walk.convolution(y, 1), Activation::kRelu6);
    y = walk.batch_norm(walk.depthwise(y, block.stride), Activation::kRelu6);
    y = walk.convolution(y, 1);
    return walk.batch_norm(y, Activation::kNone, block.has_shortcut() ? x : at::Tensor());
  }

  std::vector<Block> blocks_;
};

}  // namespace

std::unique_ptr<Model> make_mobilenet(const MobileNetOptions& options) {
  return std::make_unique<MobileNet>(options);
}

}  // namespace train::models
