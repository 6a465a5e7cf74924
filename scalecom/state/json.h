#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace scalecom::state {

/// A text that is not what was expected: "byte 17: a string was expected".
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads JSON from front to back, as its reader expects it, and builds nothing. It knows objects,
/// arrays, strings and numbers; depth is the reader's own, so no text can make
/// it recurse. Everything else is a JsonError.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  /// Calls member(key) at the value of each member; it has to read that value.
  template <typename Member>
  void object(Member&& member) {
    expect('{');
    if (take('}')) return;
    do {
      std::string key = string();
      expect(':');
      member(std::move(key));
    } while (take(','));
    expect('}');
  }

  /// Calls item() at each item; it has to read that item.
  template <typename Item>
  void array(Item&& item) {
    expect('[');
    if (take(']')) return;
    do {
      item();
    } while (take(','));
    expect(']');
  }

  /// UTF-8, checked; escapes undone.
  std::string string();
  /// Of 0 or more.
  std::int64_t whole_number();
  /// Any that JSON can write and a double can hold.
  double number();
  /// Nothing but white space may be left.
  void end();

  [[noreturn]] void fail(const std::string& what) const;

 private:
  void skip_space();
  bool take(char wanted);
  void expect(char wanted);
  char next();
  void escape(std::string& out);
  std::uint32_t hex4();

  std::string_view text_;
  std::size_t at_ = 0;
};

/// The text as a JSON string, quotes included. JsonError where it is not UTF-8.
std::string json_quoted(std::string_view text);

}  // namespace scalecom::state
