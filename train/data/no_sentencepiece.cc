#include "scalecom/core/error.h"
#include "train/data/vocabulary.h"

namespace train::data {

struct Vocabulary::Pieces {};

namespace {

[[noreturn]] void refuse() {
  throw scalecom::core::UsageError(
      "[data] this build is without sentencepiece, which divides text: install "
      "libsentencepiece-dev and build again");
}

}  // namespace

Vocabulary Vocabulary::learn(std::span<const std::string> /*sentences*/, int /*size*/) {
  refuse();
}
int Vocabulary::size() const {
  refuse();
}
std::vector<int> Vocabulary::encode(const std::string& /*text*/) const {
  refuse();
}
std::string Vocabulary::decode(std::span<const int> /*numbers*/) const {
  refuse();
}

}  // namespace train::data
