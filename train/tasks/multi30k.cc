#include "train/tasks/multi30k.h"

#include <algorithm>
#include <string>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/options.h"
#include "scalecom/core/text.h"
#include "train/data/text_pairs.h"
#include "train/data/vocabulary.h"
#include "train/models/transformer.h"

namespace train::tasks::multi30k {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;
using data::Vocabulary;
using models::TransformerOptions;

constexpr const char* kAdvice =
    "; take train, val and test_2016_flickr, each .en.gz and .de.gz, from data/task1/raw of "
    "github.com/multi30k/dataset, unpack them with gunzip, and give their folder with --data";
constexpr std::int64_t kTestBatch = 32;
// Longer sentences are not learned from, and cut when they are translated.
constexpr std::int64_t kLongest = 128;
// Lengths are rounded up to a multiple, so that a GPU needs few graphs.
constexpr std::int64_t kLengthStep = 8;

static_assert(Vocabulary::kNothing == TransformerOptions::kNothing);
static_assert(Vocabulary::kBegin == TransformerOptions::kBegin);
static_assert(Vocabulary::kEnd == TransformerOptions::kEnd);

bool is_small(const Settings& settings) {
  int small = 0;
  core::OptionTable table("multi30k");
  table.choice("size", &small, {"full", "small"});
  table.read(settings);
  return small != 0;
}

struct Texts {
  data::TextPairs training;
  data::TextPairs validation;
  data::TextPairs test;
};

Texts read_texts(const Options& options) {
  if (options.data.empty()) {
    throw core::UsageError(
        core::concat("[data] the task multi30k has no data of its own", kAdvice));
  }
  try {
    const fs::path below = options.data / "multi30k";
    const fs::path folder = fs::is_directory(below) ? below : options.data;
    const auto read = [&](const std::string& name) {
      return data::read_text_pairs(folder / (name + ".en"), folder / (name + ".de"));
    };
    const bool of_2016 = fs::exists(folder / "test_2016_flickr.en");
    return {read("train"), read("val"), read(of_2016 ? "test_2016_flickr" : "test")};
  } catch (const core::UsageError& error) {
    throw core::UsageError(core::concat(error.what(), kAdvice));
  }
}

Vocabulary learn_vocabulary(const data::TextPairs& training, bool small) {
  std::vector<std::string> sentences = training.source;
  sentences.insert(sentences.end(), training.target.begin(), training.target.end());
  return Vocabulary::learn(sentences, small ? 2000 : 8000);
}

/// A pair as tokens: the source with its end, the target with its beginning and end.
struct Pair {
  std::vector<int> source;
  std::vector<int> target;

  /// Places that it needs on either side.
  std::int64_t length() const {
    return static_cast<std::int64_t>(std::max(source.size(), target.size() - 1));
  }
};

std::vector<Pair> encode(const Vocabulary& vocabulary, const data::TextPairs& texts) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < texts.source.size(); ++i) {
    Pair pair{vocabulary.encode(texts.source[i]), {Vocabulary::kBegin}};
    pair.source.push_back(Vocabulary::kEnd);
    const std::vector<int> target = vocabulary.encode(texts.target[i]);
    pair.target.insert(pair.target.end(), target.begin(), target.end());
    pair.target.push_back(Vocabulary::kEnd);
    if (pair.length() <= kLongest) pairs.push_back(std::move(pair));
  }
  if (pairs.empty()) {
    throw core::UsageError(core::concat("[data] every sentence is over ", kLongest,
                                        " tokens long: shorter ones are needed"));
  }
  return pairs;
}

void append(std::span<const int> tokens, std::int64_t length, models::Rows& rows) {
  rows.values.insert(rows.values.end(), tokens.begin(), tokens.end());
  rows.values.insert(rows.values.end(), static_cast<std::size_t>(length) - tokens.size(),
                     Vocabulary::kNothing);
}

std::int64_t rounded_up(std::int64_t length) {
  return (length + kLengthStep - 1) / kLengthStep * kLengthStep;
}

/// What every one of these fits into.
std::int64_t length_of(std::span<const Pair* const> pairs) {
  std::int64_t length = 0;
  for (const Pair* pair : pairs) length = std::max(length, pair->length());
  return rounded_up(length);
}

/// Both sides of some pairs, as the model takes them.
models::Rows make_rows(std::span<const Pair* const> pairs, std::int64_t length) {
  models::Rows rows{2 * length + 1, {}};
  for (const Pair* pair : pairs) {
    append(pair->source, length, rows);
    append(pair->target, length + 1, rows);
  }
  return rows;
}

TransformerOptions network(bool small, std::span<const Pair> pairs, const Vocabulary& vocabulary,
                           const Options& options) {
  TransformerOptions network;
  double tokens = 0;
  for (const Pair& pair : pairs) tokens += static_cast<double>(pair.target.size() - 1);
  network.tokens = tokens / static_cast<double>(pairs.size());
  network.vocabulary = vocabulary.size();
  network.batch = options.batch;
  network.longest = kLongest + kLengthStep;
  network.dropout = 0.2;
  if (small) {
    network.width = 64;
    network.inner = 256;
    network.layers = 1;
    network.dropout = 0.1;
  }
  return network;
}

class Translation final : public Task {
 public:
  Translation(bool small, const Options& options)
      : Translation(small, options, read_texts(options)) {}

  std::string metric() const override { return "validation token accuracy (%)"; }
  double value(const Score& all) const override {
    return 100 * all.hits / static_cast<double>(all.samples);
  }
  std::int64_t samples() const override { return static_cast<std::int64_t>(training_.size()); }
  std::int64_t test_samples() const override {
    return static_cast<std::int64_t>(validation_.size());
  }

  core::Device device() const override { return engine_->device(); }
  std::span<const scalecom::layout::Tensor> tensors() const override {
    return engine_->parameters().tensors();
  }
  std::span<float> weights() override { return engine_->weights(); }
  void weights_written(const core::Stream& stream) override { engine_->weights_written(stream); }

  bool joins_learners() const override { return engine_->joined() > 1; }
  void gradients(std::span<const Shard> shards) const override {
    while (!shards.empty()) {
      const auto most = static_cast<std::size_t>(engine_->joined());
      const auto some = shards.first(std::min(most, shards.size()));
      gradients_in_rows_of_one_width(some);
      shards = shards.subspan(some.size());
    }
  }

  /// Of tokens, not of sentences.
  Score score(std::int64_t begin, std::int64_t end) const override {
    Score sum;
    for (; begin < end; begin += kTestBatch) {
      std::vector<const Pair*> pairs;
      for (std::int64_t i = begin; i < std::min(begin + kTestBatch, end); ++i) {
        pairs.push_back(&validation_[static_cast<std::size_t>(i)]);
      }
      const std::vector<float> scores = engine_->score(make_rows(pairs, length_of(pairs)));
      for (std::size_t i = 0; i < scores.size(); i += 3) {
        sum.loss += scores[i];
        sum.samples += static_cast<std::int64_t>(scores[i + 1]);
        sum.hits += scores[i + 2];
      }
    }
    return sum;
  }

  std::int64_t transcript_samples() const override {
    return static_cast<std::int64_t>(test_.source.size());
  }
  std::vector<Transcript> transcripts(std::int64_t begin, std::int64_t end) const override {
    std::vector<Transcript> lines;
    for (; begin < end; begin += kTestBatch) {
      const auto first = static_cast<std::size_t>(begin);
      const auto last = static_cast<std::size_t>(std::min(begin + kTestBatch, end));
      const std::vector<std::string> translations =
          translate(std::span(test_.source).subspan(first, last - first));
      for (std::size_t i = first; i < last; ++i) {
        lines.push_back({test_.target[i], translations[i - first]});
      }
    }
    return lines;
  }

 private:
  /// So that they can be computed as one.
  void gradients_in_rows_of_one_width(std::span<const Shard> shards) const {
    std::vector<std::vector<const Pair*>> pairs(shards.size());
    std::int64_t length = 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      for (const std::int64_t sample : shards[i].samples) {
        pairs[i].push_back(&training_[static_cast<std::size_t>(sample)]);
      }
      length = std::max(length, length_of(pairs[i]));
    }
    std::vector<models::Rows> rows;
    std::vector<models::SequenceBatch> batches;
    rows.reserve(shards.size());
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const Shard& shard = shards[i];
      const std::uint64_t noise =
          core::combine(core::combine(seed_, static_cast<std::uint64_t>(shard.learner)),
                        static_cast<std::uint64_t>(shard.step));
      rows.push_back(make_rows(pairs[i], length));
      batches.push_back({rows.back(), static_cast<std::int32_t>(noise), shard.gradient, shard.loss,
                         shard.stream});
    }
    engine_->gradients(batches);
  }

  Translation(bool small, const Options& options, Texts texts)
      : seed_(options.seed),
        vocabulary_(learn_vocabulary(texts.training, small)),
        training_(encode(vocabulary_, texts.training)),
        validation_(encode(vocabulary_, texts.validation)),
        test_(std::move(texts.test)) {
    const TransformerOptions model = network(small, training_, vocabulary_, options);
    models::SequenceEngine::Options engine{options.seed,   options.batch,     options.at_once,
                                           options.joined, model.positions(), model.width};
    engine_ = models::make_sequence_engine(options.device, models::make_transformer(model),
                                           std::move(engine));
  }

  std::vector<std::string> translate(std::span<const std::string> sentences) const {
    std::vector<std::vector<int>> sources;
    std::int64_t length = 0;
    for (const std::string& sentence : sentences) {
      std::vector<int> source = vocabulary_.encode(sentence);
      source.resize(std::min(source.size(), static_cast<std::size_t>(kLongest - 1)));
      source.push_back(Vocabulary::kEnd);
      length = std::max(length, static_cast<std::int64_t>(source.size()));
      sources.push_back(std::move(source));
    }
    models::Rows rows{rounded_up(length), {}};
    for (const std::vector<int>& source : sources) append(source, rows.width, rows);
    const std::vector<float> answers = engine_->answer(rows);
    const std::size_t width = answers.size() / sentences.size();
    std::vector<std::string> translations;
    for (std::size_t at = 0; at < answers.size(); at += width) {
      std::vector<int> tokens(answers.begin() + static_cast<std::ptrdiff_t>(at),
                              answers.begin() + static_cast<std::ptrdiff_t>(at + width));
      tokens.erase(std::remove(tokens.begin(), tokens.end(), Vocabulary::kNothing), tokens.end());
      translations.push_back(vocabulary_.decode(tokens));
    }
    return translations;
  }

  std::uint64_t seed_;
  Vocabulary vocabulary_;
  std::vector<Pair> training_;
  std::vector<Pair> validation_;
  data::TextPairs test_;
  std::unique_ptr<models::SequenceEngine> engine_;
};

}  // namespace

Recipe recipe(const Settings& settings) {
  const bool small = is_small(settings);
  Recipe recipe;
  recipe.epochs = small ? 3 : 30;
  recipe.batch = 32;
  recipe.learning_rate = small ? 4e-3 : 7e-4;
  recipe.learning_rate_warmup = 0.15;
  recipe.optimizer = optimizers::Optimizer::Kind::kAdam;
  recipe.weight_decay = 0;
  recipe.scored_apart = true;
  return recipe;
}

std::unique_ptr<Task> make(const Settings& settings, const Options& options) {
  return std::make_unique<Translation>(is_small(settings), options);
}

}  // namespace train::tasks::multi30k
