#include "train/data/vocabulary.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <unordered_map>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace train::data {
namespace {

namespace core = scalecom::core;
using sentencepiece::util::Status;

void check(const Status& status, const char* what) {
  if (status.ok()) return;
  throw core::UsageError(
      core::concat("[data] sentencepiece cannot ", what, ": ", status.ToString()));
}

class Sentences final : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(std::span<const std::string> all) : all_(all) {}
  bool done() const override { return next_ == all_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return all_[next_]; }
  Status status() const override { return {}; }

 private:
  std::span<const std::string> all_;
  std::size_t next_ = 0;
};

}  // namespace

struct Vocabulary::Pieces {
  sentencepiece::SentencePieceProcessor processor;
};

Vocabulary Vocabulary::learn(std::span<const std::string> sentences, int size) {
  Sentences all(sentences);
  std::string model;
  // One thread, so that the result is always the same; every character is kept, and silence.
  const std::unordered_map<std::string, std::string> options{{"model_type", "bpe"},
                                                             {"vocab_size", std::to_string(size)},
                                                             {"hard_vocab_limit", "false"},
                                                             {"character_coverage", "1.0"},
                                                             {"num_threads", "1"},
                                                             {"minloglevel", "2"},
                                                             {"pad_id", std::to_string(kNothing)},
                                                             {"bos_id", std::to_string(kBegin)},
                                                             {"eos_id", std::to_string(kEnd)},
                                                             {"unk_id", std::to_string(kUnknown)}};
  check(sentencepiece::SentencePieceTrainer::Train(options, &all, &model), "learn a vocabulary");
  auto pieces = std::make_shared<Pieces>();
  check(pieces->processor.LoadFromSerializedProto(model), "take its own vocabulary");
  return Vocabulary(std::move(pieces));
}

int Vocabulary::size() const {
  return pieces_->processor.GetPieceSize();
}

std::vector<int> Vocabulary::encode(const std::string& text) const {
  std::vector<int> numbers;
  check(pieces_->processor.Encode(text, &numbers), "take a sentence apart");
  return numbers;
}

std::string Vocabulary::decode(std::span<const int> numbers) const {
  std::string text;
  check(pieces_->processor.Decode(std::vector<int>(numbers.begin(), numbers.end()), &text),
        "put a sentence together");
  return text;
}

}  // namespace train::data
