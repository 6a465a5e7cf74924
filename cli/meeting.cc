#include "cli/meeting.h"

#include <cstdlib>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/torch/torchrun.h"
#include "train/loop/watchdog.h"

namespace cli {
namespace {

namespace core = scalecom::core;

/// Where the processes meet, as torchrun's variables say, or "".
std::string meeting_place() {
  const char* const address = std::getenv("MASTER_ADDR");
  const char* const port = std::getenv("MASTER_PORT");
  const bool is_named = address != nullptr && port != nullptr;
  const bool is_used = scalecom::torch::launcher() != scalecom::torch::Launcher::kNone;
  return is_named && is_used ? core::concat(address, ":", port) : "";
}

std::string too_late(std::chrono::duration<double> deadline) {
  const std::string place = meeting_place();
  const std::string advice = core::concat(" within the deadline of ", deadline.count(),
                                          " s: see that each of them starts scalecom");
  if (place.empty()) return core::concat("[mpi] not all processes of the job arrived", advice);
  return core::concat("[torchrun] this process met no others at ", place, advice,
                      " and can reach it");
}

}  // namespace

std::chrono::milliseconds deadline_of(double seconds) {
  using std::chrono::milliseconds;
  if (!(seconds > 0 && seconds < 1e6)) {
    throw core::UsageError(
        core::concat("[deadline] --deadline ", seconds, " is out of range; give seconds over 0"));
  }
  return std::chrono::duration_cast<milliseconds>(std::chrono::duration<double>(seconds));
}

std::unique_ptr<train::loop::Processes> meet(const std::string& command,
                                             std::chrono::milliseconds deadline) {
  // Whoever has a deadline of its own says more; all is said within two seconds of it.
  constexpr auto kGrace = std::chrono::seconds(1);
  const train::loop::Watchdog watchdog(deadline + kGrace,
                                       core::concat(command, ": ", too_late(deadline)));
  return std::make_unique<train::loop::Processes>(deadline);
}

}  // namespace cli
