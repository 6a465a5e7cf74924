#include "train/data/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace train::data {
namespace {

std::vector<std::string> sentences() {
  std::vector<std::string> all;
  for (const char* who : {"A man", "A woman", "Ein Mann", "Eine Frau", "Zwei Männer"}) {
    for (const char* what :
         {" is running.", " läuft schnell.", " plays the guitar.", " isst Eis."}) {
      all.push_back(std::string(who) + what);
    }
  }
  return all;
}

TEST(VocabularyTest, TextComesBack) {
  const auto all = sentences();
  const Vocabulary vocabulary = Vocabulary::learn(all, 80);
  EXPECT_LE(vocabulary.size(), 80);
  for (const std::string& sentence : all) {
    const std::vector<int> numbers = vocabulary.encode(sentence);
    EXPECT_LT(numbers.size(), sentence.size());
    EXPECT_EQ(vocabulary.decode(numbers), sentence);
    for (const int number : numbers) {
      EXPECT_GT(number, Vocabulary::kUnknown);
      EXPECT_LT(number, vocabulary.size());
    }
  }
}

TEST(VocabularyTest, TheSameSentencesGiveTheSame) {
  const auto all = sentences();
  const Vocabulary one = Vocabulary::learn(all, 80);
  const Vocabulary other = Vocabulary::learn(all, 80);
  for (const std::string& sentence : all) EXPECT_EQ(one.encode(sentence), other.encode(sentence));
}

TEST(VocabularyTest, TakesWhatFewSentencesHave) {
  const Vocabulary vocabulary = Vocabulary::learn(sentences(), 8000);
  EXPECT_LT(vocabulary.size(), 1000);
  EXPECT_EQ(vocabulary.decode(vocabulary.encode("Eine Frau läuft.")), "Eine Frau läuft.");
}

TEST(VocabularyTest, AnUnknownCharacterIsOneNumber) {
  const Vocabulary vocabulary = Vocabulary::learn(sentences(), 80);
  const std::vector<int> numbers = vocabulary.encode("A 猫");
  EXPECT_EQ(std::count(numbers.begin(), numbers.end(), Vocabulary::kUnknown), 1);
}

}  // namespace
}  // namespace train::data
