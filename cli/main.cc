#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
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
    const int status = command.run();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    return cli::report(name, "[output] standard output cannot be written", cli::kFailure);
  } catch (const scalecom::core::UsageError& error) {
    return cli::report(name, error.what(), cli::kUsage);
  } catch (const std::bad_alloc&) {
    return cli::report(name, "[memory] there is less of it than this takes", cli::kFailure);
  } catch (const std::exception& error) {
    return cli::report(name, error.what(), cli::kFailure);
  }
}

// What is wrong with a command line that could not be read: a word that is no command, one that is
// no option, or what CLI11 has to say.
int refuse(const CLI::App& program, const std::vector<std::string>& words,
           const CLI::ParseError& error) {
  const CLI::App* app = &program;
  std::string name = program.get_name();
  std::size_t depth = 0;
  for (; !app->get_subcommands().empty(); ++depth) {
    app = app->get_subcommands().front();
    name += " " + app->get_name();
  }
  std::string message = error.what();
  const auto commands = app->get_subcommands([](const CLI::App*) { return true; });
  const std::vector<std::string> extras = program.remaining(true);
  const auto option = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& word) { return word.starts_with("-"); });
  if (!commands.empty() && depth < words.size() && !words[depth].starts_with("-")) {
    std::vector<std::string> names;
    for (const CLI::App* one : commands) names.push_back(one->get_name());
    return cli::report(name,
                       scalecom::core::concat("'", words[depth], "' is not a command; there are ",
                                              scalecom::core::join(names)),
                       cli::kUsage);
  }
  if (option != extras.end()) message = scalecom::core::concat(*option, " is not an option");
  return cli::report(name, message + "; see " + name + " --help", cli::kUsage);
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
    return refuse(program, {argv + 1, argv + argc}, error);
  }
  for (const cli::Command& command : commands) {
    if (command.app->parsed()) return run(command);
  }
  return cli::kUsage;
}
