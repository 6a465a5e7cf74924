#pragma once

#include <functional>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
}

namespace cli {

/// A subcommand: how it is called, and what it does. run() returns the exit status; what it throws,
/// main() reports: core::UsageError with status 2, everything else with 1.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

/// What every failure prints: one line on standard error, "COMMAND: MESSAGE". Returns the status.
int report(const std::string& command, std::string message, int status);

constexpr int kFailure = 1;
constexpr int kUsage = 2;
constexpr int kInterrupted = 130;

/// One file a subcommand: train.cc has add_train(), bench_reduce.cc that of `bench reduce`.
Command add_train(CLI::App& program);
Command add_compare(CLI::App& program);
Command add_bench(CLI::App& program);
Command add_bench_reduce(CLI::App& bench);
Command add_plan(CLI::App& program);
Command add_inspect(CLI::App& program);
Command add_reproduce(CLI::App& program);

}  // namespace cli
