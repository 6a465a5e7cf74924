#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace train::data {

/// Parts of words, by sentencepiece: text into numbers and back.
class Vocabulary {
 public:
  // Numbers that stand for no text.
  static constexpr int kNothing = 0;
  static constexpr int kBegin = 1;
  static constexpr int kEnd = 2;
  static constexpr int kUnknown = 3;

  /// Learns as many parts as `size`, or as the sentences have where that is less, by merging the
  /// most frequent pairs; the same sentences give the same. core::UsageError where sentencepiece
  /// cannot, or this build is without it.
  static Vocabulary learn(std::span<const std::string> sentences, int size);

  int size() const;
  std::vector<int> encode(const std::string& text) const;
  std::string decode(std::span<const int> numbers) const;

 private:
  struct Pieces;
  explicit Vocabulary(std::shared_ptr<const Pieces> pieces) : pieces_(std::move(pieces)) {}

  std::shared_ptr<const Pieces> pieces_;
};

}  // namespace train::data
