#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
}

namespace cli {

/// The option --json FILE of every subcommand: one object, for machines.
class JsonOutput {
 public:
  void add_to(CLI::App& command);

  /// Whether standard output is the object's alone.
  bool takes_stdout() const { return path_ == "-"; }
  /// core::UsageError where the file could not be written: better now than after the work.
  void check() const;
  /// Writes the object where one was asked for; a file appears whole or not at all.
  void write(const nlohmann::ordered_json& object) const;

 private:
  std::string path_;
};

}  // namespace cli
