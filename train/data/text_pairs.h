#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace train::data {

/// Sentences and their translations.
struct TextPairs {
  std::vector<std::string> source;
  std::vector<std::string> target;
};

/// Reads two files of which each line of one is the translation of the same line of the other.
/// core::UsageError, naming the file and what is wrong with it, where one is missing, empty or
/// not UTF-8, or they have unequal numbers of lines.
TextPairs read_text_pairs(const std::filesystem::path& source, const std::filesystem::path& target);

}  // namespace train::data
