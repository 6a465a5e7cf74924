#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

int cli::report(const std::string& command, std::string message, int status) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fprintf(stderr, "%s: %s\n", command.c_str(), message.c_str());
  return status;
}

namespace {

constexpr const char* kFooter = R"(
Exit status: 0 done; 1 a failure; 2 a mistake in what was asked for; 130 interrupted, and resumable.

Example:
  scalecom train --task synthetic --learners 4 --method scalecom,rate=25,beta=0.1 --out runs/first
  scalecom inspect runs/first)";

int run(const cli::Command& command) {
  const std::string name = "scalecom " + command.app->get_name();
  try {
    return command.run();
  } catch (const scalecom::core::UsageError& error) {
    return cli::report(name, error.what(), cli::kUsage);
  } catch (const std::exception& error) {
    return cli::report(name, error.what(), cli::kFailure);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Gradient compression for data-parallel training", "scalecom");
  program.set_version_flag("--version", "scalecom " SCALECOM_VERSION);
  program.require_subcommand(1);
  program.footer(kFooter);
  const std::vector<cli::Command> commands{cli::add_train(program),   cli::add_compare(program),
                                           cli::add_bench(program),   cli::add_plan(program),
                                           cli::add_inspect(program), cli::add_reproduce(program)};

  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& wanted) {
    return program.exit(wanted);
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && argv[1][0] != '-' && program.get_subcommands().empty()) {
      std::vector<std::string> names(commands.size());
      std::transform(commands.begin(), commands.end(), names.begin(),
                     [](const cli::Command& command) { return command.app->get_name(); });
      return cli::report("scalecom",
                         scalecom::core::concat("'", argv[1], "' is not a command; there are ",
                                                scalecom::core::join(names)),
                         cli::kUsage);
    }
    std::string name = "scalecom";
    for (const CLI::App* app : program.get_subcommands()) name += " " + app->get_name();
    return cli::report(name, std::string(error.what()) + "; see " + name + " --help", cli::kUsage);
  }
  for (const cli::Command& command : commands) {
    if (command.app->parsed()) return run(command);
  }
  return cli::kUsage;
}
