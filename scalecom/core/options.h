#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace scalecom::core {

/// An option string taken apart: "scalecom,rate=100,beta=0.1" has the name "scalecom" and two
/// settings. A key given twice, or a piece that is not key=value, is a UsageError.
struct OptionString {
  std::string name;
  std::vector<std::pair<std::string, std::string>> settings;

  static OptionString parse(const std::string& text);
};

/// The keys that a thing understands, each bound to the variable it sets. Reading is all or
/// nothing: every key and value is looked at before any variable changes.
class OptionTable {
 public:
  /// `owner` names the thing in error messages: "scalecom".
  explicit OptionTable(std::string owner) : owner_(std::move(owner)) {}

  enum class Bound { kClosed, kOpen };

  /// A number in [low, high], or (low, high] where `at_low` is open.
  void number(const std::string& key, double* target, double low, Bound at_low,
              double high = std::numeric_limits<double>::infinity());
  /// A whole number in [low, high].
  void integer(const std::string& key, std::int64_t* target, std::int64_t low,
               std::int64_t high = std::numeric_limits<std::int64_t>::max());
  /// One of the names; the target becomes its index.
  void choice(const std::string& key, int* target, const std::vector<std::string>& names);
  /// Anything that `take` accepts. `take` returns the function that commits the value, and throws
  /// UsageError for a text that is not allowed; `show` prints the present value.
  using Take = std::function<std::function<void()>(const std::string& text)>;
  void custom(const std::string& key, const std::string& allowed, Take take,
              std::function<std::string()> show);

  /// Sets what `settings` gives. UsageError, naming what is allowed, for a key or value that is
  /// not.
  void read(const std::vector<std::pair<std::string, std::string>>& settings) const;

  /// Every key with its present value, in the order of declaration: "rate=100,beta=1,..."
  std::string text() const;

  /// "rate=<a number from 1 on>, beta=<...>": for error messages and help.
  std::string allowed() const;

 private:
  struct Key {
    std::string name;
    std::string allowed;
    Take take;
    std::function<std::string()> show;
  };

  std::string owner_;
  std::vector<Key> keys_;
};

}  // namespace scalecom::core
