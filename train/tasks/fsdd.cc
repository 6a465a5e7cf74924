#include "train/tasks/fsdd.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/options.h"
#include "scalecom/core/text.h"
#include "train/data/fsdd.h"
#include "train/decoding/ctc.h"
#include "train/decoding/edits.h"
#include "train/models/recogniser.h"
#include "train/tasks/digit_strings.h"

namespace train::tasks::fsdd {
namespace {

namespace core = scalecom::core;

constexpr const char* kAdvice =
    "; get the Free Spoken Digit Dataset with git clone "
    "https://github.com/Jakobovski/free-spoken-digit-dataset, and give that folder with --data";
constexpr std::int64_t kTestBatch = 32;
constexpr int kBeam = 8;
constexpr std::int64_t kMostHeldOut = 1000;
// So that the test is the same in every run.
constexpr std::uint64_t kTestSeed = 0x74657374;
constexpr std::array kWords{"zero", "one", "two",   "three", "four",
                            "five", "six", "seven", "eight", "nine"};

struct Wanted {
  int small = 0;
  int greedy = 0;
  std::int64_t held_out = 0;  // takes
};

Wanted read(const Settings& settings) {
  Wanted wanted;
  core::OptionTable table("fsdd");
  table.choice("size", &wanted.small, {"full", "small"});
  table.choice("decode", &wanted.greedy, {"beam", "greedy"});
  table.integer("held_out", &wanted.held_out, 0, kMostHeldOut);
  table.read(settings);
  return wanted;
}

data::Fsdd read_data(const Options& options, std::int64_t held_out) {
  if (options.data.empty()) {
    throw core::UsageError(core::concat("[data] the task fsdd has no data of its own", kAdvice));
  }
  try {
    return data::read_fsdd(options.data, held_out);
  } catch (const core::UsageError& error) {
    throw core::UsageError(core::concat(error.what(), kAdvice));
  }
}

DigitStrings::Options strings(const Wanted& wanted) {
  DigitStrings::Options options;
  if (wanted.small != 0) {
    options.window = 240;
    options.fewest = 2;
    options.most = 4;
  }
  return options;
}

models::RecogniserOptions network(const Wanted& wanted, const DigitStrings::Options& strings,
                                  const Options& options) {
  models::RecogniserOptions network;
  network.frames = strings.window;
  network.labels = strings.most;
  network.batch = options.batch;
  if (wanted.small != 0) {
    network.hidden = 64;
    network.layers = 1;
  }
  return network;
}

void check_fit(std::span<const SpokenDigit> digits, const DigitStrings::Options& options) {
  for (const SpokenDigit& digit : digits) {
    if (digit.frames <= options.window) continue;
    throw core::UsageError(core::concat("[data] a recording of the digit ", digit.digit, " has ",
                                        digit.frames, " frames of 10 ms; at most ", options.window,
                                        " fit: cut it"));
  }
}

std::string words(std::span<const int> digits) {
  std::vector<std::string> words;
  for (const int digit : digits) words.emplace_back(kWords[static_cast<std::size_t>(digit)]);
  return core::join(words, " ");
}

class SpokenDigits final : public Task {
 public:
  SpokenDigits(const Wanted& wanted, const Options& options)
      : SpokenDigits(wanted, options, read_data(options, wanted.held_out)) {}

  std::string metric() const override { return "test word error rate (%)"; }
  double value(const Score& all) const override {
    return 100 * all.hits / static_cast<double>(test_words_);
  }
  std::int64_t samples() const override { return training_.size(); }
  std::int64_t test_samples() const override { return test_.size(); }

  core::Device device() const override { return engine_->device(); }
  std::span<const scalecom::layout::Tensor> tensors() const override {
    return engine_->parameters().tensors();
  }
  std::span<float> weights() override { return engine_->weights(); }
  void weights_written(const core::Stream& stream) override { engine_->weights_written(stream); }

  bool joins_learners() const override { return engine_->joined() > 1; }
  void gradients(std::span<const Shard> shards) const override {
    std::vector<models::Rows> rows;
    std::vector<models::SequenceBatch> batches;
    rows.reserve(shards.size());
    for (const Shard& shard : shards) {
      const std::uint64_t noise =
          core::combine(core::combine(seed_, static_cast<std::uint64_t>(shard.learner)),
                        static_cast<std::uint64_t>(shard.step));
      models::Rows& own = rows.emplace_back(models::Rows{network_.width(), {}});
      for (std::size_t i = 0; i < shard.samples.size(); ++i) {
        append(training_.compose(shard.samples[i], core::combine(noise, i)), own);
      }
      batches.push_back({own, 0, shard.gradient, shard.loss, shard.stream});
    }
    engine_->gradients(batches);
  }

  /// The metric counts edits.
  Score score(std::int64_t begin, std::int64_t end) const override {
    Score sum{0, 0, end - begin};
    judge(begin, end, [&](const Judged& judged) {
      sum.loss += judged.loss;
      sum.hits += static_cast<double>(decoding::edits(judged.said, judged.heard));
    });
    return sum;
  }

  std::int64_t transcript_samples() const override { return test_samples(); }
  std::vector<Transcript> transcripts(std::int64_t begin, std::int64_t end) const override {
    std::vector<Transcript> lines;
    judge(begin, end, [&](const Judged& judged) {
      lines.push_back({words(judged.said), words(judged.heard)});
    });
    return lines;
  }

 private:
  SpokenDigits(const Wanted& wanted, const Options& options, const data::Fsdd& data)
      : seed_(options.seed),
        greedy_(wanted.greedy != 0),
        network_(network(wanted, strings(wanted), options)),
        frames_(features_) {
    std::vector<SpokenDigit> training = frames_.add(data.training);
    std::vector<SpokenDigit> test = frames_.add(data.test);
    check_fit(training, strings(wanted));
    check_fit(test, strings(wanted));
    frames_.normalise(training);
    training_ = DigitStrings(std::move(training), strings(wanted));
    test_ = DigitStrings(std::move(test), strings(wanted));
    for (std::int64_t i = 0; i < test_.size(); ++i) {
      test_words_ += static_cast<std::int64_t>(test_string(i).digits.size());
    }
    models::SequenceEngine::Options engine{options.seed,   options.batch,    options.at_once,
                                           options.joined, frames_.values(), network_.bands};
    engine_ = models::make_sequence_engine(options.device, models::make_recogniser(network_),
                                           std::move(engine));
  }

  DigitStrings::String test_string(std::int64_t index) const {
    return test_.compose(index, core::combine(kTestSeed, static_cast<std::uint64_t>(index)));
  }

  void append(const DigitStrings::String& string, models::Rows& rows) const {
    rows.values.insert(rows.values.end(), string.frames.begin(), string.frames.end());
    for (std::int64_t i = 0; i < network_.labels; ++i) {
      const auto at = static_cast<std::size_t>(i);
      rows.values.push_back(at < string.digits.size() ? string.digits[at] + 1 : 0);
    }
  }

  struct Judged {
    double loss;
    std::vector<int> said;
    std::vector<int> heard;
  };

  template <typename Visit>
  void judge(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    const std::int64_t steps = network_.steps() * network_.classes;
    for (; begin < end; begin += kTestBatch) {
      models::Rows rows{network_.width(), {}};
      std::vector<std::vector<int>> said;
      for (std::int64_t i = begin; i < std::min(begin + kTestBatch, end); ++i) {
        DigitStrings::String string = test_string(i);
        append(string, rows);
        said.push_back(std::move(string.digits));
      }
      const std::vector<float> scores = engine_->score(rows);
      const float* at = scores.data();
      for (std::vector<int>& digits : said) {
        visit(Judged{*at, std::move(digits), decode({at + 1, static_cast<std::size_t>(steps)})});
        at += 1 + steps;
      }
    }
  }

  std::vector<int> decode(std::span<const float> log_probabilities) const {
    const decoding::CtcOutput output{log_probabilities, static_cast<int>(network_.classes)};
    std::vector<int> digits =
        greedy_ ? decoding::decode_greedily(output) : decoding::decode_by_beam(output, kBeam);
    for (int& digit : digits) --digit;  // of classes, 0 is nothing
    return digits;
  }

  std::uint64_t seed_;
  bool greedy_;
  models::RecogniserOptions network_;
  data::LogMel features_{{}};
  DigitFrames frames_;
  DigitStrings training_{{}, {}};
  DigitStrings test_{{}, {}};
  std::int64_t test_words_ = 0;
  std::unique_ptr<models::SequenceEngine> engine_;
};

}  // namespace

Recipe recipe(const Settings& settings) {
  const Wanted wanted = read(settings);
  Recipe recipe;
  recipe.epochs = wanted.small != 0 ? 10 : 40;
  recipe.batch = 16;
  recipe.learning_rate = wanted.small != 0 ? 8e-3 : 2e-3;
  recipe.optimizer = optimizers::Optimizer::Kind::kAdam;
  recipe.weight_decay = 0;
  return recipe;
}

std::unique_ptr<Task> make(const Settings& settings, const Options& options) {
  return std::make_unique<SpokenDigits>(read(settings), options);
}

}  // namespace train::tasks::fsdd
