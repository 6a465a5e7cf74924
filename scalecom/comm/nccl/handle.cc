#include "scalecom/comm/nccl/handle.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::comm::nccl {
namespace {

/// How long a failure may take to clear up. NCCL can hang while it aborts; we do not.
constexpr std::chrono::seconds kAbortPatience{10};

}  // namespace

bool is_error(ncclResult_t status) {
  return status != ncclSuccess && status != ncclInProgress;
}

void Backoff::pause() {
  if (++tries_ < 200) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

std::string error_text(ncclResult_t status) {
  std::string details = ncclGetLastError(nullptr);
  std::ranges::replace(details, '\n', ' ');
  while (details.ends_with(' ')) details.pop_back();
  return core::concat("NCCL: ", ncclGetErrorString(status),
                      details.empty() ? "" : core::concat(" (", details, ")"));
}

ncclResult_t grouped(const std::function<ncclResult_t()>& calls) {
  if (const ncclResult_t status = ncclGroupStart(); is_error(status)) return status;
  const ncclResult_t status = calls();
  const ncclResult_t end = ncclGroupEnd();
  return is_error(status) ? status : end;
}

Handle::Handle(const Id& id, int rank, int size, core::Device device,
               std::chrono::milliseconds deadline)
    : Handle(device) {
  const core::cuda::DeviceScope scope(device);
  ncclUniqueId unique{};
  static_assert(sizeof(unique.internal) == std::tuple_size_v<Id>);
  std::memcpy(unique.internal, id.data(), id.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  // So that every wait for a peer is ours, and has a deadline.
  config.blocking = 0;
  last_deadline_ = deadline;
  const ncclResult_t status =
      settle(ncclCommInitRankConfig(&slot_->comm, size, unique, rank, &config), deadline);
  if (status == ncclSuccess) return;
  const std::string failure = core::concat(
      "[nccl] rank ", rank, " of ", size, ": ",
      status == ncclInProgress
          ? core::concat("deadline of ", deadline.count(), " ms passed before all ranks had come")
          : error_text(status));
  fail(failure);
  if (status == ncclInvalidArgument || status == ncclInvalidUsage) throw core::UsageError(failure);
  if (status == ncclUnhandledCudaError) throw core::DeviceError(failure);
  throw core::PeerError(failure);
}

Handle::~Handle() {
  if (slot_->comm == nullptr || !failure_.empty()) return;
  if (settle(ncclCommFinalize(slot_->comm), last_deadline_) == ncclSuccess) {
    static_cast<void>(ncclCommDestroy(slot_->comm));
  } else {
    fail("[nccl] the end took too long");
  }
}

void Handle::check(Fabric::Call call) const {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw core::PeerError(already_failed(call, failure_));
}

void Handle::run(const Operation& operation, const Issue& issue) {
  ncclResult_t status = ncclSuccess;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw core::PeerError(already_failed(operation.call, failure_));
    last_deadline_ = operation.deadline;
    status = issue(slot_->comm);
  }
  settle(operation, status);
}

void Handle::settle(const Operation& operation, ncclResult_t status) {
  // NCCL may say "success" of what it has only begun; its state tells.
  if (!is_error(status)) status = state();
  for (Backoff backoff; status == ncclInProgress;) {
    backoff.pause();
    check_progress(operation);
    status = state();
  }
  if (is_error(status)) fail(operation, status);
  check(operation.call);
}

ncclResult_t Handle::settle(ncclResult_t status, Fabric::Clock::duration longest) const {
  const auto until = Fabric::Clock::now() + longest;
  if (!is_error(status)) status = state();
  for (Backoff backoff; status == ncclInProgress && Fabric::Clock::now() < until;) {
    backoff.pause();
    status = state();
  }
  return status;
}

ncclResult_t Handle::state() const {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return ncclSuccess;
  if (slot_->comm == nullptr) return ncclInProgress;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t status = ncclCommGetAsyncError(slot_->comm, &state);
  return is_error(status) ? status : state;
}

void Handle::fail(const Operation& operation, ncclResult_t status) {
  const std::string failure = comm::failure(operation.call, error_text(status));
  fail(failure);
  if (status == ncclUnhandledCudaError) throw core::DeviceError(failure);
  throw core::PeerError(failure);
}

void Handle::fail(const std::string& failure) {
  const std::lock_guard abort_lock(abort_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = failure;
  }
  if (slot_->comm == nullptr) return;
  // Without the mutex: it takes until the kernels have ended, and others are to be told at once.
  auto aborted = std::make_shared<std::promise<void>>();
  const auto abort = [slot = slot_, aborted] {
    static_cast<void>(ncclCommAbort(slot->comm));
    aborted->set_value();
  };
  try {
    std::thread(abort).detach();
  } catch (const std::system_error&) {
    abort();  // no thread is to be had
  }
  static_cast<void>(aborted->get_future().wait_for(kAbortPatience));
}

std::string Handle::trouble(Fabric::Call call) const {
  const ncclResult_t status = state();
  return is_error(status) ? comm::failure(call, error_text(status)) : std::string();
}

std::string Handle::late(const Operation& operation) {
  return failure(operation.call,
                 core::concat("deadline of ", operation.deadline.count(),
                              " ms passed; NCCL does not say which rank it waits for"));
}

void Handle::check_progress(const Operation& operation) {
  check(operation.call);
  if (const ncclResult_t status = state(); is_error(status)) fail(operation, status);
  if (Fabric::Clock::now() < operation.until) return;
  const std::string failure = late(operation);
  fail(failure);
  throw core::PeerError(failure);
}

std::unique_ptr<Handle> Handle::split(const Operation& operation, int color, int key) {
  std::unique_ptr<Handle> child(new Handle(device_));
  child->last_deadline_ = operation.deadline;
  const core::cuda::DeviceScope scope(device_);
  try {
    // Filled in while this communicator is at work on it. The child takes over its settings.
    run(operation, [&](ncclComm_t comm) {
      return ncclCommSplit(comm, color, key, &child->slot_->comm, nullptr);
    });
    child->settle(operation, ncclInProgress);
  } catch (const std::exception& error) {
    fail(error.what());
    child->fail(error.what());
    throw;
  }
  return child;
}

}  // namespace scalecom::comm::nccl
