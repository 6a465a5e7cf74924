#include "scalecom/torch/torchrun.h"

#include <c10/util/Logging.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/torch/first_line.h"
#include "scalecom/torch/gloo_link.h"

namespace scalecom::torch {
namespace {

bool is_set(const char* name) {
  return std::getenv(name) != nullptr;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    throw core::UsageError(core::concat(
        "[torchrun] the variable ", name, " is not set; torchrun sets RANK, WORLD_SIZE, ",
        "MASTER_ADDR and MASTER_PORT: without it, set all of them, or none to train alone"));
  }
  return value;
}

int number(const char* name, int least, int most) {
  const std::string text = variable(name);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw core::UsageError(core::concat("[torchrun] the variable ", name, " is '", text,
                                        "'; it is a number from ", least, " to ", most));
  }
  return value;
}

/// torchrun may have a store running at the master's address already.
bool has_store_of_agent() {
  const char* const value = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  return value != nullptr && std::strcmp(value, "True") == 0;
}

/// What torch logs of a meeting that fails, with its stack, is said by our error in one line; who
/// sets torch's variable gets all of it.
void set_log_level() {
  constexpr int kFatal = 3;
  if (is_set("TORCH_CPP_LOG_LEVEL")) {
    c10::initLogging();
  } else {
    FLAGS_caffe2_log_level = kFatal;
  }
}

/// torchrun starts its processes again after a failure; a store may still have what was said
/// before.
std::string attempt() {
  const char* const restarts = std::getenv("TORCHELASTIC_RESTART_COUNT");
  return restarts != nullptr ? restarts : "0";
}

constexpr int kMostProcesses = 1 << 16;
constexpr int kLargestPort = 65535;

}  // namespace

Launcher launcher() {
  if (is_set("TORCHELASTIC_RUN_ID")) return Launcher::kTorchrun;
  return is_set("RANK") || is_set("WORLD_SIZE") ? Launcher::kItsVariables : Launcher::kNone;
}

struct Torchrun::Meeting {
  int size = number("WORLD_SIZE", 1, kMostProcesses);
  int rank = number("RANK", 0, size - 1);
  std::string host = variable("MASTER_ADDR");
  int port = number("MASTER_PORT", 1, kLargestPort);
  c10::intrusive_ptr<c10d::Store> store;
  int links = 0;
};

Torchrun::Torchrun(std::chrono::milliseconds deadline) : meeting_(std::make_unique<Meeting>()) {
  set_log_level();
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(meeting_->port);
  options.isServer = meeting_->rank == 0 && !has_store_of_agent();
  options.waitWorkers = false;
  options.timeout = deadline;
  try {
    meeting_->store = c10::make_intrusive<c10d::TCPStore>(meeting_->host, options);
  } catch (const std::exception& error) {
    throw core::PeerError(core::concat(
        "[torchrun] process ", meeting_->rank, " cannot reach the master at ", meeting_->host, ":",
        meeting_->port, " within ", deadline.count(), " ms: ", first_line(error.what())));
  }
}

Torchrun::~Torchrun() = default;

int Torchrun::rank() const {
  return meeting_->rank;
}

int Torchrun::size() const {
  return meeting_->size;
}

std::shared_ptr<comm::Link> Torchrun::open_link(std::chrono::milliseconds deadline, int ranks) {
  const auto store = c10::make_intrusive<c10d::PrefixStore>(
      core::concat("scalecom/", attempt(), "/", meeting_->links++), meeting_->store);
  return open_gloo_link(store, meeting_->rank, meeting_->size, ranks, deadline);
}

}  // namespace scalecom::torch
