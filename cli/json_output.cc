#include "cli/json_output.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "scalecom/core/error.h"
#include "scalecom/state/file.h"
#include "scalecom/state/text_file.h"

namespace cli {

void JsonOutput::add_to(CLI::App& command) {
  command
      .add_option("--json", path_, "Write the result to this file, as JSON; - for standard output")
      ->type_name("FILE");
}

void JsonOutput::check() const {
  if (path_.empty() || takes_stdout()) return;
  std::error_code unseen;  // who writes there will say so
  if (std::filesystem::is_directory(path_, unseen)) {
    throw scalecom::core::UsageError("[json] " + path_ + " is a folder; choose another --json");
  }
  try {
    const scalecom::state::NewFile attempt(path_);
  } catch (const scalecom::core::UsageError& error) {
    throw scalecom::core::UsageError(std::string(error.what()) + "; for standard output give -");
  } catch (const scalecom::core::IoError& error) {
    throw scalecom::core::UsageError(std::string(error.what()) + "; choose another --json");
  }
}

void JsonOutput::write(const nlohmann::ordered_json& object) const {
  if (path_.empty()) return;
  const std::string text = object.dump(2) + "\n";
  if (takes_stdout()) {
    std::fputs(text.c_str(), stdout);
    return;
  }
  scalecom::state::write_text(path_, text);
}

}  // namespace cli
