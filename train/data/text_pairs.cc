#include "train/data/text_pairs.h"

#include <sstream>

#include "scalecom/core/text.h"
#include "scalecom/core/utf8.h"
#include "train/data/file.h"

namespace train::data {
namespace {

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  const std::vector<std::uint8_t> content = read_file(path);
  if (content.empty()) refuse(path, "is empty");
  std::istringstream text(std::string(content.begin(), content.end()));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    // Else a run would be trained to its end, and its translations could not be scored.
    if (!scalecom::core::is_utf8(line)) {
      refuse(path, scalecom::core::concat("is not UTF-8: see line ", lines.size() + 1));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

TextPairs read_text_pairs(const std::filesystem::path& source,
                          const std::filesystem::path& target) {
  TextPairs pairs{read_lines(source), read_lines(target)};
  if (pairs.source.size() != pairs.target.size()) {
    refuse(target, scalecom::core::concat("has ", pairs.target.size(), " lines and ",
                                          source.string(), " ", pairs.source.size(),
                                          ": each is to be the translation of the same line"));
  }
  return pairs;
}

}  // namespace train::data
