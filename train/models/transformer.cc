#include "train/models/transformer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "scalecom/core/text.h"
#include "train/decoding/beam.h"
#include "train/models/layers/dropout.h"
#include "train/models/layers/linear.h"
#include "train/models/layers/token_table.h"
#include "train/models/sequence_pass.h"

namespace train::models {
namespace {

namespace core = scalecom::core;
using layers::Dropout;

constexpr double kHidden = -1e9;  // what is added for a place that may not be looked at
constexpr double kEpsilon = 1e-5;
constexpr double kLengthPenalty = 0.6;

/// Takes the parameters of a pass in the order in which they were added, for one learner's
/// mini-batch or for those of several.
class Walk {
 public:
  /// After the table of tokens.
  explicit Walk(const SequenceModel::Pass& pass)
      : next_(pass.parameters.data() + 1), learners_(pass.learners) {}

  at::Tensor linear(const at::Tensor& x) {
    const at::Tensor& weight = take();
    return layers::linear(x, weight, take());
  }
  at::Tensor norm(const at::Tensor& x) {
    const at::Tensor& scale = take();
    const at::Tensor& bias = take();
    if (learners_ == 1) return at::layer_norm(x, x.size(-1), scale, bias, kEpsilon);
    const at::Tensor y = of_learners(at::layer_norm(x, x.size(-1), {}, {}, kEpsilon));
    return at::addcmul(bias.unsqueeze(1), y, scale.unsqueeze(1)).view(x.sizes());
  }
  /// Each place's likeness to every row of a table: (samples, places, rows).
  at::Tensor compare(const at::Tensor& x, const at::Tensor& table) const {
    const at::Tensor y = learners_ == 1 ? at::mm(x.flatten(0, 1), table.t())
                                        : at::bmm(of_learners(x), table.transpose(1, 2));
    return y.view({x.size(0), x.size(1), -1});
  }
  const at::Tensor& take() { return *next_++; }

 private:
  /// (learners, places of all samples, width).
  at::Tensor of_learners(const at::Tensor& x) const {
    return x.reshape({learners_, -1, x.size(-1)});
  }

  const at::Tensor* next_;
  std::int64_t learners_;
};

/// What an attention looks at: (samples, heads, places, width of a head).
struct Seen {
  at::Tensor keys;
  at::Tensor values;
};

/// What a layer of the decoder has seen, which grows by a place when tokens come one by one.
struct Memory {
  Seen own;
  Seen source;

  void select(const at::Tensor& samples) {
    for (at::Tensor* part : {&own.keys, &own.values, &source.keys, &source.values}) {
      *part = part->index_select(0, samples);
    }
  }
};

class Transformer final : public SequenceModel {
 public:
  explicit Transformer(const TransformerOptions& options) : options_(options) {
    const std::int64_t width = options.width;
    positions_ = options.tokens * static_cast<double>(options.batch);
    parameters_.add_noise({"tokens.weight", {options.vocabulary, width}, 2 * positions_},
                          static_cast<float>(std::sqrt(3.0 / static_cast<double>(width))));
    for (std::int64_t layer = 1; layer <= options.layers; ++layer) {
      const std::string name = core::concat("encoder", layer);
      describe_attention(name + ".attention", true);
      describe_feed_forward(name);
    }
    describe_norm("encoder.norm");
    for (std::int64_t layer = 1; layer <= options.layers; ++layer) {
      const std::string name = core::concat("decoder", layer);
      describe_attention(name + ".attention", true);
      describe_attention(name + ".source", false);
      describe_feed_forward(name);
    }
    describe_norm("decoder.norm");
  }

  Numbers loss(const Pass& pass) const override {
    const Sides sides(pass.rows);
    const at::Tensor losses = at::cross_entropy_loss(
        logits(pass, sides).flatten(0, 1), sides.wanted.flatten(), {}, at::Reduction::None,
        TransformerOptions::kNothing, options_.smoothing);
    const at::Tensor counts = sides.wanted.ne(TransformerOptions::kNothing);
    return {losses.view({pass.learners, -1}).sum(1) /
            counts.reshape({pass.learners, -1}).sum(1).to(at::kFloat)};
  }

  Numbers score(const Pass& pass) const override {
    const Sides sides(pass.rows);
    const at::Tensor out = logits(pass, sides);
    const at::Tensor counts = sides.wanted.ne(TransformerOptions::kNothing);
    const at::Tensor losses =
        at::nll_loss(at::log_softmax(out, 2).flatten(0, 1), sides.wanted.flatten(), {},
                     at::Reduction::None, TransformerOptions::kNothing)
            .view(sides.wanted.sizes());
    const at::Tensor hits = out.argmax(2).eq(sides.wanted).logical_and_(counts);
    return {
        at::stack({losses.sum(1), counts.sum(1).to(at::kFloat), hits.sum(1).to(at::kFloat)}, 1)};
  }

  Numbers answer(const Pass& pass) const override;

 private:
  /// A row's parts.
  struct Sides {
    explicit Sides(const at::Tensor& rows) {
      const std::int64_t length = (rows.size(1) - 1) / 2;
      source = rows.narrow(1, 0, length);
      given = rows.narrow(1, length, length);
      wanted = rows.narrow(1, length + 1, length);
    }
    at::Tensor source;
    at::Tensor given;   ///< of the target, to say
    at::Tensor wanted;  ///< what comes next
  };

  void describe_linear(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    const double bound = std::sqrt(6.0 / static_cast<double>(inputs + outputs));
    add_linear(name, inputs, outputs, bound, positions_);
  }
  void describe_norm(const std::string& name) {
    parameters_.add_constant({name + ".scale", {options_.width}, 2 * positions_}, 1);
    parameters_.add_constant({name + ".bias", {options_.width}, 2 * positions_}, 0);
  }
  /// To itself, or to the source.
  void describe_attention(const std::string& name, bool to_itself) {
    const std::int64_t width = options_.width;
    describe_norm(name + ".norm");
    describe_linear(name + ".query", width, width);
    describe_linear(name + (to_itself ? ".see" : ".see_source"), width, 2 * width);
    describe_linear(name + ".out", width, width);
  }
  void describe_feed_forward(const std::string& name) {
    describe_norm(name + ".norm");
    describe_linear(name + ".in", options_.width, options_.inner);
    describe_linear(name + ".out", options_.inner, options_.width);
  }

  /// Tokens at places from `first` on, as vectors.
  at::Tensor embed(const Pass& pass, const at::Tensor& tokens, std::int64_t first) const {
    const at::Tensor x = layers::look_up(pass.parameters[0], tokens, TransformerOptions::kNothing);
    return x * std::sqrt(static_cast<double>(options_.width)) +
           pass.table.narrow(0, first, tokens.size(1));
  }

  at::Tensor heads(const at::Tensor& x) const {
    return x.unflatten(2, {options_.heads, -1}).transpose(1, 2);
  }
  Seen see(Walk& walk, const at::Tensor& x) const {
    const auto parts = walk.linear(x).chunk(2, 2);
    return {heads(parts[0]), heads(parts[1])};
  }
  static at::Tensor attend(const at::Tensor& query, const Seen& seen, const at::Tensor& mask) {
    const double scale = 1 / std::sqrt(static_cast<double>(query.size(3)));
    const at::Tensor scores = at::matmul(query, seen.keys.transpose(2, 3)) * scale + mask;
    return at::matmul(at::softmax(scores, 3), seen.values).transpose(1, 2).flatten(2);
  }

  static at::Tensor feed_forward(Walk& walk, Dropout& dropout, const at::Tensor& x) {
    const at::Tensor inner = at::relu(walk.linear(walk.norm(x)));
    return x + dropout(walk.linear(inner));
  }

  static at::Tensor hide(const at::Tensor& hidden) {
    return at::zeros_like(hidden, at::kFloat).masked_fill_(hidden, kHidden);
  }
  /// Places of a source that hold nothing: (samples, 1, 1, places).
  static at::Tensor source_mask(const at::Tensor& source) {
    return hide(source.eq(TransformerOptions::kNothing)).unsqueeze(1).unsqueeze(1);
  }

  at::Tensor encode(const Pass& pass, Walk& walk, Dropout& dropout, const at::Tensor& source,
                    const at::Tensor& mask) const {
    at::Tensor x = dropout(embed(pass, source, 0));
    for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
      const at::Tensor y = walk.norm(x);
      const at::Tensor query = heads(walk.linear(y));
      const Seen seen = see(walk, y);
      x = x + dropout(walk.linear(attend(query, seen, mask)));
      x = feed_forward(walk, dropout, x);
    }
    return walk.norm(x);
  }

  /// `source` is looked at in a layer's first call, which remembers what it has seen.
  at::Tensor decoder_layer(Walk& walk, Dropout& dropout, at::Tensor x, const at::Tensor& source,
                           const at::Tensor& own_mask, const at::Tensor& mask,
                           Memory& memory) const {
    const at::Tensor y = walk.norm(x);
    const at::Tensor query = heads(walk.linear(y));
    const Seen now = see(walk, y);
    memory.own = memory.own.keys.defined() ? Seen{at::cat({memory.own.keys, now.keys}, 2),
                                                  at::cat({memory.own.values, now.values}, 2)}
                                           : now;
    x = x + dropout(walk.linear(attend(query, memory.own, own_mask)));

    const at::Tensor source_query = heads(walk.linear(walk.norm(x)));
    if (memory.source.keys.defined()) {
      walk.take();
      walk.take();
    } else {
      memory.source = see(walk, source);
    }
    x = x + dropout(walk.linear(attend(source_query, memory.source, mask)));
    return feed_forward(walk, dropout, x);
  }

  at::Tensor logits(const Pass& pass, const Sides& sides) const {
    Walk walk(pass);
    Dropout dropout(pass.noise, options_.dropout);
    const at::Tensor mask = source_mask(sides.source);
    const at::Tensor source = encode(pass, walk, dropout, sides.source, mask);
    const std::int64_t length = sides.given.size(1);
    const at::Tensor places = at::arange(length, sides.given.options());
    const at::Tensor later = hide(places.unsqueeze(0).gt(places.unsqueeze(1)));
    at::Tensor x = dropout(embed(pass, sides.given, 0));
    for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
      Memory memory;
      x = decoder_layer(walk, dropout, x, source, later, mask, memory);
    }
    const at::Tensor last = walk.norm(x);
    return walk.compare(last, pass.parameters[0]);
  }

  TransformerOptions options_;
  double positions_;
};

/// The searches of all samples of a batch, whose live hypotheses go through the network together.
class Searches {
 public:
  Searches(std::int64_t samples, const decoding::BeamSearch::Options& options)
      : searches_(static_cast<std::size_t>(samples), decoding::BeamSearch(options)) {
    for (std::int64_t i = 0; i < samples; ++i) {
      rows_.push_back(i);
      tokens_.push_back(TransformerOptions::kBegin);
    }
  }

  bool empty() const { return rows_.empty(); }
  /// The last token of each live hypothesis, and the row of the step before that it continues.
  const std::vector<std::int64_t>& tokens() const { return tokens_; }
  const std::vector<std::int64_t>& rows() const { return rows_; }

  /// The most probable tokens that come next, `most` a row.
  void advance(const at::Tensor& values, const at::Tensor& tokens) {
    const std::int64_t most = values.size(1);
    const float* value = values.const_data_ptr<float>();
    const std::int64_t* token = tokens.const_data_ptr<std::int64_t>();
    std::int64_t row = 0;
    rows_.clear();
    tokens_.clear();
    for (decoding::BeamSearch& search : searches_) {
      std::vector<decoding::Candidate> candidates;
      const std::int64_t first = row;
      for (std::size_t parent = 0; parent < search.live().size(); ++parent, ++row) {
        for (std::int64_t i = 0; i < most; ++i) {
          candidates.push_back({static_cast<int>(parent), static_cast<int>(*token++), *value++});
        }
      }
      if (candidates.empty()) continue;
      search.advance(candidates);
      for (const auto& hypothesis : search.live()) {
        rows_.push_back(first + hypothesis.parent);
        tokens_.push_back(hypothesis.tokens.back());
      }
    }
  }

  /// The best of each, a row each.
  at::Tensor best() const {
    std::size_t longest = 1;
    for (const auto& search : searches_) longest = std::max(longest, search.best().size());
    at::Tensor all = at::zeros(
        {static_cast<std::int64_t>(searches_.size()), static_cast<std::int64_t>(longest)});
    for (std::size_t s = 0; s < searches_.size(); ++s) {
      const std::vector<int>& best = searches_[s].best();
      float* const to = all.mutable_data_ptr<float>() + s * longest;
      std::copy(best.begin(), best.end(), to);
    }
    return all;
  }

 private:
  std::vector<decoding::BeamSearch> searches_;
  std::vector<std::int64_t> rows_;
  std::vector<std::int64_t> tokens_;
};

SequenceModel::Numbers Transformer::answer(const Pass& pass) const {
  Walk walk(pass);
  Dropout none({}, 0);
  at::Tensor mask = source_mask(pass.rows);
  const at::Tensor source = encode(pass, walk, none, pass.rows, mask);
  const at::Tensor no_mask = at::zeros({1}, mask.options());
  std::vector<Memory> memories(static_cast<std::size_t>(options_.layers));
  // A translation is seldom twice as long as what it translates.
  const std::int64_t longest = std::min(2 * pass.rows.size(1) + 8, options_.longest - 1);
  Searches searches(pass.rows.size(0),
                    {options_.beam, TransformerOptions::kEnd, longest, kLengthPenalty});
  for (std::int64_t place = 0; !searches.empty(); ++place) {
    const at::Tensor tokens = at::tensor(searches.tokens(), at::kLong).to(pass.rows.device());
    if (place > 0) {
      const at::Tensor rows = at::tensor(searches.rows(), at::kLong).to(pass.rows.device());
      for (Memory& memory : memories) memory.select(rows);
      mask = mask.index_select(0, rows);
    }
    Walk decoder = walk;
    at::Tensor x = embed(pass, tokens.unsqueeze(1), place);
    for (Memory& memory : memories) {
      x = decoder_layer(decoder, none, x, source, no_mask, mask, memory);
    }
    const at::Tensor last = decoder.norm(x);
    const at::Tensor out = decoder.compare(last, pass.parameters[0]).squeeze(1);
    const auto [values, next] = at::log_softmax(out, 1).topk(options_.beam + 1, 1);
    searches.advance(values.cpu(), next.cpu());
  }
  return {searches.best()};
}

}  // namespace

std::vector<float> TransformerOptions::positions() const {
  std::vector<float> table;
  for (std::int64_t place = 0; place < longest; ++place) {
    for (std::int64_t i = 0; i < width; ++i) {
      const double exponent = static_cast<double>(i / 2 * 2) / static_cast<double>(width);
      const double angle = static_cast<double>(place) / std::pow(10000.0, exponent);
      table.push_back(static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle)));
    }
  }
  return table;
}

std::unique_ptr<SequenceModel> make_transformer(const TransformerOptions& options) {
  return std::make_unique<Transformer>(options);
}

}  // namespace train::models
