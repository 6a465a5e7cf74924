#include <algorithm>
#include <functional>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/plan/model.h"

namespace scalecom::plan {
namespace {

using core::concat;

/// Images go through convolutions, each with its batch norm.
class ConvolutionalNet {
 public:
  ConvolutionalNet(std::string name, std::int64_t side) : side_(side) {
    model_.name = std::move(name);
    model_.sample = concat("an image of ", side, " x ", side);
  }

  std::int64_t channels() const { return channels_; }
  std::int64_t side() const { return side_; }
  void set_input(std::int64_t channels, std::int64_t side) {
    channels_ = channels;
    side_ = side;
  }

  void convolution(const std::string& name, std::int64_t out, std::int64_t kernel,
                   std::int64_t stride, std::int64_t groups = 1) {
    side_ = (side_ + stride - 1) / stride;
    const std::int64_t in = channels_ / groups;
    const auto weights = static_cast<double>(out * in * kernel * kernel);
    Layer layer{name,
                {{name + ".weight", {out, in, kernel, kernel}},
                 {name + ".bn.weight", {out}},
                 {name + ".bn.bias", {out}}}};
    layer.forward_flops = 2 * weights * static_cast<double>(side_ * side_);
    model_.layers.push_back(std::move(layer));
    channels_ = out;
  }
  void pool(std::int64_t stride) { side_ /= stride; }

  Model end(std::int64_t classes) {
    Layer layer{"fc", {{"fc.weight", {classes, channels_}}, {"fc.bias", {classes}}}};
    layer.forward_flops = 2 * static_cast<double>(classes * channels_);
    model_.layers.push_back(std::move(layer));
    return std::move(model_);
  }

 private:
  Model model_;
  std::int64_t channels_ = 3;
  std::int64_t side_;
};

void basic_block(ConvolutionalNet& net, const std::string& name, std::int64_t width,
                 std::int64_t stride, bool project) {
  const std::int64_t in = net.channels();
  const std::int64_t side = net.side();
  net.convolution(name + ".conv1", width, 3, stride);
  net.convolution(name + ".conv2", width, 3, 1);
  if (!project) return;
  net.set_input(in, side);
  net.convolution(name + ".downsample", width, 1, stride);
}

void bottleneck(ConvolutionalNet& net, const std::string& name, std::int64_t width,
                std::int64_t stride, bool project) {
  constexpr std::int64_t kExpansion = 4;
  const std::int64_t in = net.channels();
  const std::int64_t side = net.side();
  net.convolution(name + ".conv1", width, 1, 1);
  net.convolution(name + ".conv2", width, 3, stride);
  net.convolution(name + ".conv3", kExpansion * width, 1, 1);
  if (!project) return;
  net.set_input(in, side);
  net.convolution(name + ".downsample", kExpansion * width, 1, stride);
}

Model resnet(const std::string& name, const std::vector<int>& blocks, bool deep) {
  ConvolutionalNet net(name, 224);
  net.convolution("conv1", 64, 7, 2);
  net.pool(2);
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::int64_t width = 64LL << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::string path = concat("layer", stage + 1, ".", block);
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      const bool project = block == 0 && (deep || stage > 0);
      (deep ? bottleneck : basic_block)(net, path, width, stride, project);
    }
  }
  return net.end(1000);
}

Model mobilenet_v2() {
  struct Stage {
    std::int64_t expansion, channels, blocks, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  ConvolutionalNet net("mobilenetv2", 224);
  net.convolution("stem", 32, 3, 2);
  int number = 0;
  for (const Stage& stage : kStages) {
    for (std::int64_t block = 0; block < stage.blocks; ++block) {
      const std::string path = concat("block", number++);
      const std::int64_t wide = stage.expansion * net.channels();
      if (stage.expansion > 1) net.convolution(path + ".expand", wide, 1, 1);
      net.convolution(path + ".depthwise", wide, 3, block == 0 ? stage.stride : 1, wide);
      net.convolution(path + ".project", stage.channels, 1, 1);
    }
  }
  net.convolution("head", 1280, 1, 1);
  return net.end(1000);
}

/// Sequences of `tokens` go through blocks of attention and two or three more matrices.
class Transformer {
 public:
  Transformer(std::string name, std::int64_t tokens) : tokens_(tokens) {
    model_.name = std::move(name);
    model_.sample = concat("a sequence of ", tokens, " tokens");
  }

  /// A table of which a token needs one row: no arithmetic.
  void table(const std::string& name, std::int64_t rows, std::int64_t columns) {
    model_.layers.push_back({name, {{name + ".weight", {rows, columns}}}});
  }
  void vectors(const std::string& name, std::int64_t length, bool bias) {
    Layer layer{name, {{name + ".weight", {length}}}};
    if (bias) layer.tensors.push_back({name + ".bias", {length}});
    model_.layers.push_back(std::move(layer));
  }
  /// Every token goes through it once; `extra_flops` are a sequence's beside the product.
  void linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias,
              double extra_flops = 0) {
    Layer layer{name, {{name + ".weight", {out, in}}}};
    if (bias) layer.tensors.push_back({name + ".bias", {out}});
    layer.forward_flops =
        2 * static_cast<double>(out * in) * static_cast<double>(tokens_) + extra_flops;
    model_.layers.push_back(std::move(layer));
  }
  /// Of scores and of the sums that they weigh; half of them count where tokens see only those
  /// before them.
  double attention_flops(std::int64_t width, bool causal) const {
    const auto tokens = static_cast<double>(tokens_);
    return (causal ? 2 : 4) * tokens * tokens * static_cast<double>(width);
  }
  /// The product with a table that is also the embedding: arithmetic, and no parameters of its own.
  void tied_output(std::int64_t vocabulary, std::int64_t width) {
    model_.layers.back().forward_flops +=
        2 * static_cast<double>(vocabulary * width) * static_cast<double>(tokens_);
  }
  Model end() { return std::move(model_); }
  void describe(std::string sample) { model_.sample = std::move(sample); }

 private:
  Model model_;
  std::int64_t tokens_;
};

void attention(Transformer& net, const std::string& path, std::int64_t width, bool bias,
               bool causal) {
  for (const char* part : {".query", ".key", ".value"}) net.linear(path + part, width, width, bias);
  net.linear(path + ".output", width, width, bias, net.attention_flops(width, causal));
}

// The shared embedding counts once; encoder and decoder see 32 tokens each.
Model transformer_base() {
  constexpr std::int64_t kWidth = 512;
  constexpr std::int64_t kInner = 2048;
  constexpr std::int64_t kVocabulary = 37000;
  Transformer net("transformer-base", 32);
  net.describe("a pair of sentences of 32 tokens");
  net.table("embedding", kVocabulary, kWidth);
  for (const char* side : {"encoder", "decoder"}) {
    const bool decodes = side[0] == 'd';
    for (int block = 0; block < 6; ++block) {
      const std::string path = concat(side, ".", block);
      attention(net, path + ".self", kWidth, true, decodes);
      net.vectors(path + ".norm1", kWidth, true);
      if (decodes) {
        attention(net, path + ".cross", kWidth, true, false);
        net.vectors(path + ".norm2", kWidth, true);
      }
      net.linear(path + ".inner", kInner, kWidth, true);
      net.linear(path + ".outer", kWidth, kInner, true);
      net.vectors(path + ".norm3", kWidth, true);
    }
  }
  net.tied_output(kVocabulary, kWidth);
  return net.end();
}

Model bert_base() {
  constexpr std::int64_t kWidth = 768;
  Transformer net("bert-base", 512);
  net.table("embeddings.word", 30522, kWidth);
  net.table("embeddings.position", 512, kWidth);
  net.table("embeddings.type", 2, kWidth);
  net.vectors("embeddings.norm", kWidth, true);
  for (int block = 0; block < 12; ++block) {
    const std::string path = concat("encoder.", block);
    attention(net, path, kWidth, true, false);
    net.vectors(path + ".norm1", kWidth, true);
    net.linear(path + ".inner", 4 * kWidth, kWidth, true);
    net.linear(path + ".outer", kWidth, 4 * kWidth, true);
    net.vectors(path + ".norm2", kWidth, true);
  }
  net.linear("pooler", kWidth, kWidth, true);
  return net.end();
}

Model gpt2() {
  constexpr std::int64_t kWidth = 768;
  constexpr std::int64_t kVocabulary = 50257;
  Transformer net("gpt2", 1024);
  net.table("wte", kVocabulary, kWidth);
  net.table("wpe", 1024, kWidth);
  for (int block = 0; block < 12; ++block) {
    const std::string path = concat("h.", block);
    net.vectors(path + ".ln_1", kWidth, true);
    net.linear(path + ".attn.c_attn", 3 * kWidth, kWidth, true);
    net.linear(path + ".attn.c_proj", kWidth, kWidth, true, net.attention_flops(kWidth, true));
    net.vectors(path + ".ln_2", kWidth, true);
    net.linear(path + ".mlp.c_fc", 4 * kWidth, kWidth, true);
    net.linear(path + ".mlp.c_proj", kWidth, 4 * kWidth, true);
  }
  net.vectors("ln_f", kWidth, true);
  net.tied_output(kVocabulary, kWidth);
  return net.end();
}

Model llama_7b() {
  constexpr std::int64_t kWidth = 4096;
  constexpr std::int64_t kInner = 11008;
  constexpr std::int64_t kVocabulary = 32000;
  Transformer net("llama-7b", 2048);
  net.table("embed_tokens", kVocabulary, kWidth);
  for (int block = 0; block < 32; ++block) {
    const std::string path = concat("layers.", block);
    net.vectors(path + ".input_norm", kWidth, false);
    attention(net, path + ".attention", kWidth, false, true);
    net.vectors(path + ".post_norm", kWidth, false);
    net.linear(path + ".gate", kInner, kWidth, false);
    net.linear(path + ".up", kInner, kWidth, false);
    net.linear(path + ".down", kWidth, kInner, false);
  }
  net.vectors("norm", kWidth, false);
  net.linear("lm_head", kVocabulary, kWidth, false);
  return net.end();
}

using Maker = std::function<Model()>;

// A new model is one line here.
const std::vector<std::pair<std::string, Maker>>& makers() {
  static const std::vector<std::pair<std::string, Maker>> list = {
      {"resnet18",
       [] {
         return resnet("resnet18", {2, 2, 2, 2}, false);
       }},
      {"resnet34",
       [] {
         return resnet("resnet34", {3, 4, 6, 3}, false);
       }},
      {"resnet50",
       [] {
         return resnet("resnet50", {3, 4, 6, 3}, true);
       }},
      {"mobilenetv2", mobilenet_v2},
      {"transformer-base", transformer_base},
      {"bert-base", bert_base},
      {"gpt2", gpt2},
      {"llama-7b", llama_7b},
  };
  return list;
}

}  // namespace

std::vector<std::string> built_in_models() {
  std::vector<std::string> names;
  for (const auto& [name, make] : makers()) names.push_back(name);
  return names;
}

Model built_in_model(const std::string& name) {
  for (const auto& [one, make] : makers()) {
    if (one == name) return make();
  }
  throw core::UsageError(concat("[plan] no model '", name, "'; there are ",
                                core::join(built_in_models()),
                                ", and files whose names end in .json"));
}

}  // namespace scalecom::plan
