#include "scalecom/state/json.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "scalecom/core/text.h"
#include "scalecom/core/utf8.h"

namespace scalecom::state {
namespace {

using core::concat;
using core::utf8_length;

void append_utf8(std::string& out, std::uint32_t code) {
  const auto push = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    push(code);
  } else if (code < 0x800) {
    push(0xc0U | (code >> 6));
    push(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    push(0xe0U | (code >> 12));
    push(0x80U | ((code >> 6) & 0x3fU));
    push(0x80U | (code & 0x3fU));
  } else {
    push(0xf0U | (code >> 18));
    push(0x80U | ((code >> 12) & 0x3fU));
    push(0x80U | ((code >> 6) & 0x3fU));
    push(0x80U | (code & 0x3fU));
  }
}

// The letter after the backslash of a short escape and the character it stands for.
constexpr std::string_view kShortLetters = "\"\\bfnrt";
constexpr std::string_view kShortCharacters = "\"\\\b\f\n\r\t";

void append_escaped(std::string& out, char character) {
  const std::size_t index = kShortCharacters.find(character);
  if (index != std::string_view::npos) {
    out += {'\\', kShortLetters[index]};
    return;
  }
  constexpr const char* kDigits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(character);
  out += {'\\', 'u', '0', '0', kDigits[code >> 4], kDigits[code & 0xfU]};
}

}  // namespace

void JsonCursor::fail(const std::string& what) const {
  throw JsonError(concat("byte ", at_, ": ", what));
}

void JsonCursor::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
}

bool JsonCursor::take(char wanted) {
  skip_space();
  if (at_ == text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

void JsonCursor::expect(char wanted) {
  if (!take(wanted)) fail(concat("'", wanted, "' was expected"));
}

char JsonCursor::next() {
  if (at_ == text_.size()) fail("the text ends within a string");
  return text_[at_++];
}

void JsonCursor::end() {
  skip_space();
  if (at_ != text_.size()) fail("something follows the end");
}

std::string JsonCursor::string() {
  if (!take('"')) fail("a string was expected");
  std::string out;
  for (;;) {
    const char character = next();
    if (character == '"') return out;
    if (character == '\\') {
      escape(out);
      continue;
    }
    --at_;
    if (static_cast<unsigned char>(character) < 0x20) fail("a control character within a string");
    const std::size_t length = utf8_length(text_, at_);
    if (length == 0) fail("a string that is not UTF-8");
    out.append(text_, at_, length);
    at_ += length;
  }
}

void JsonCursor::escape(std::string& out) {
  const char letter = next();
  if (letter == '/') {
    out.push_back('/');
    return;
  }
  if (const std::size_t index = kShortLetters.find(letter); index != std::string_view::npos) {
    out.push_back(kShortCharacters[index]);
    return;
  }
  if (letter != 'u') fail("an escape that JSON does not know");
  std::uint32_t code = hex4();
  if (code >= 0xdc00 && code < 0xe000) fail("the second half of a surrogate pair alone");
  if (code >= 0xd800 && code < 0xdc00) {
    if (next() != '\\' || next() != 'u') fail("the first half of a surrogate pair alone");
    const std::uint32_t low = hex4();
    if (low < 0xdc00 || low >= 0xe000) fail("the first half of a surrogate pair alone");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  append_utf8(out, code);
}

std::uint32_t JsonCursor::hex4() {
  std::uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const char digit = next();
    code <<= 4;
    if (digit >= '0' && digit <= '9') {
      code |= static_cast<std::uint32_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      code |= static_cast<std::uint32_t>(digit - 'a' + 10);
    } else if (digit >= 'A' && digit <= 'F') {
      code |= static_cast<std::uint32_t>(digit - 'A' + 10);
    } else {
      fail("four hexadecimal digits were expected");
    }
  }
  return code;
}

std::int64_t JsonCursor::whole_number() {
  skip_space();
  const auto is_digit = [this] {
    return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9';
  };
  if (!is_digit()) fail("a whole number of 0 or more was expected");
  const bool zero = text_[at_] == '0';
  std::int64_t value = 0;
  for (int digits = 0; is_digit(); ++digits, ++at_) {
    if (zero && digits > 0) fail("a number that begins with 0");
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, text_[at_] - '0', &value)) {
      fail("a number beyond 64 bits");
    }
  }
  return value;
}

double JsonCursor::number() {
  skip_space();
  const std::string_view rest = text_.substr(at_);
  const std::size_t length = std::min(rest.find_first_not_of("+-.0123456789eE"), rest.size());
  const std::string_view digits = rest.substr(rest.starts_with('-') ? 1 : 0);
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + length, value);
  // from_chars also reads "1.", ".5" and "007".
  const bool json =
      !digits.empty() && digits[0] >= '0' && digits[0] <= '9' &&
      !(digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') &&
      rest.substr(0, length).find(".e") == std::string_view::npos &&
      rest.substr(0, length).find(".E") == std::string_view::npos &&
      (length == 0 || rest[length - 1] != '.');
  if (!json || (error == std::errc() && end != rest.data() + length)) fail("a number was expected");
  if (error == std::errc::result_out_of_range) fail("a number that no double holds");
  if (error != std::errc()) fail("a number was expected");
  at_ += length;
  return value;
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) throw JsonError(concat("byte ", at, ": not UTF-8"));
    const char character = text[at];
    if (static_cast<unsigned char>(character) < 0x20 || character == '"' || character == '\\') {
      append_escaped(out, character);
    } else {
      out.append(text, at, length);
    }
    at += length;
  }
  out.push_back('"');
  return out;
}

}  // namespace scalecom::state
