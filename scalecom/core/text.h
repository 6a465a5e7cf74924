#pragma once

#include <locale>
#include <sstream>
#include <string>
#include <vector>

namespace scalecom::core {

/// The arguments, printed one after the other, whatever the program's locale is.
template <typename... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << args);
  return out.str();
}

/// "a, b, c"
template <typename Range>
std::string join(const Range& items, const char* separator = ", ") {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << separator;
    out << item;
    first = false;
  }
  return out.str();
}

/// The pieces of `text` between separators; one piece, empty, for an empty text.
std::vector<std::string> split(const std::string& text, char separator);

/// The shortest decimal text that reads back as the same number.
std::string shortest(double number);

}  // namespace scalecom::core
