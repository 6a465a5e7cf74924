#include "train/loop/processes.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "scalecom/comm/hybrid/hybrid.h"
#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "train/loop/watchdog.h"

namespace train::loop {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;

// Far more than the options of any run.
constexpr std::int64_t kLongestText = std::int64_t{64} << 20;

std::vector<std::string> gather_texts(comm::Communicator& communicator, const std::string& mine) {
  const auto sizes = comm::gather(communicator, static_cast<std::int64_t>(mine.size()));
  for (std::size_t process = 0; process < sizes.size(); ++process) {
    if (sizes[process] >= 0 && sizes[process] <= kLongestText) continue;
    throw core::PeerError(core::concat("[train] process ", process, " announced a text of ",
                                       sizes[process], " bytes; ", kLongestText, " are the most"));
  }
  std::string all(static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), 0LL)), ' ');
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                          sizes);
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (const std::int64_t size : sizes) {
    texts.push_back(all.substr(begin, static_cast<std::size_t>(size)));
    begin += static_cast<std::size_t>(size);
  }
  return texts;
}

std::string first_difference(const std::string& here, const std::string& there) {
  const auto ours = nlohmann::ordered_json::parse(here);
  const auto theirs = nlohmann::ordered_json::parse(there);
  for (const auto& [key, value] : ours.items()) {
    if (!theirs.contains(key) || theirs[key] == value) continue;
    return core::concat(key, " is ", value.dump(), " in process 0 and ", theirs[key].dump());
  }
  return "they are of different versions in process 0 and";
}

}  // namespace

// Of several launchers the inner one counts: Slurm may start torchrun and sets variables that MPI
// knows, and a container may have torchrun's in which mpirun is run.
Processes::Processes(std::chrono::milliseconds deadline) : deadline_(deadline) {
  using scalecom::torch::Launcher;
  const Launcher launcher = scalecom::torch::launcher();
  const bool by_mpi = launcher != Launcher::kTorchrun && comm::mpi::is_launched();
  if (by_mpi) {
    session_.emplace(deadline);
    between_ = comm::mpi::make_communicator(deadline);
  } else if (launcher != Launcher::kNone) {
    torchrun_.emplace(deadline);
    const int processes = torchrun_->size();
    auto world =
        comm::hybrid::make_world(torchrun_->open_link(deadline, processes), processes, deadline);
    between_ = std::move(world.front());
  } else {
    between_ = std::move(comm::inproc::make_world(1, deadline).front());
  }
}

std::vector<std::unique_ptr<comm::Communicator>> Processes::make_world(int learners) {
  // Threads of one process can share a GPU's arrays.
  if (size() == 1) return comm::inproc::make_world(learners, deadline_);
  if (!torchrun_) return comm::hybrid::make_world(learners, deadline_);
  // A store whose host has stopped answers no call, whatever the call's own deadline.
  constexpr auto kGrace = std::chrono::seconds(1);
  const Watchdog watchdog(
      deadline_ + kGrace,
      core::concat("[torchrun] the learners could not be joined over gloo within the deadline of ",
                   std::chrono::duration<double>(deadline_).count(),
                   " s: a process does not answer"));
  return comm::hybrid::make_world(torchrun_->open_link(deadline_, learners), learners, deadline_);
}

void Processes::end_job(int status) {
  if (session_) comm::mpi::Session::end_job(status);
}

void Processes::compare(const std::string& settings) {
  const auto texts = gather_texts(*between_, settings);
  for (std::size_t process = 1; process < texts.size(); ++process) {
    if (texts[process] == texts[0]) continue;
    throw core::UsageError(core::concat("[train] the processes have different options: ",
                                        first_difference(texts[0], texts[process]), " in process ",
                                        process, "; give all of them the same"));
  }
}

}  // namespace train::loop
