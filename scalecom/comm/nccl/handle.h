#pragma once

#include <nccl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "scalecom/comm/fabric.h"
#include "scalecom/comm/nccl/nccl.h"

/// What NCCL's communicator is made of. Nobody else includes this.
namespace scalecom::comm::nccl {

/// How a thread waits for NCCL: giving way at first, as most waits are short, then asleep.
class Backoff {
 public:
  void pause();

 private:
  int tries_ = 0;
};

/// An ncclComm_t that never blocks, used by one thread and watched by another. Its first failure is
/// the last: it is aborted, which ends its kernels, and refuses every later call.
class Handle {
 public:
  using Operation = Fabric::Operation;
  using Issue = std::function<ncclResult_t(ncclComm_t)>;

  /// See make_communicator().
  Handle(const Id& id, int rank, int size, core::Device device, std::chrono::milliseconds deadline);
  /// Ends what is left in an orderly way, as far as that takes no longer than the last deadline.
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  core::Device device() const { return device_; }

  /// PeerError where an earlier call failed.
  void check(Fabric::Call call) const;
  /// Returns when what `issue` asked of NCCL is on its stream.
  void run(const Operation& operation, const Issue& issue);
  /// The ranks that give the same color, which is 0 or more, in the order of keys.
  std::unique_ptr<Handle> split(const Operation& operation, int color, int key);

  /// Throws where NCCL has an error to report, or the operation is late. For those who wait.
  void check_progress(const Operation& operation);
  /// The same, as text: empty where all is well.
  std::string trouble(Fabric::Call call) const;
  static std::string late(const Operation& operation);

  /// The communicator has failed, for this reason unless it has another. Returns when nothing of it
  /// is left, or NCCL takes too long to see to that; then what is left stays.
  void fail(const std::string& failure);

 private:
  /// NCCL writes it from a thread of its own, until it is done or aborted.
  struct Slot {
    ncclComm_t comm = nullptr;
  };

  explicit Handle(core::Device device) : device_(device), slot_(std::make_shared<Slot>()) {}
  [[noreturn]] void fail(const Operation& operation, ncclResult_t status);
  /// Waits while NCCL is at work on something; `status` is what it said last.
  void settle(const Operation& operation, ncclResult_t status);
  /// The same without an operation to blame: ncclInProgress where it takes longer than that.
  ncclResult_t settle(ncclResult_t status, Fabric::Clock::duration longest) const;
  ncclResult_t state() const;

  const core::Device device_;
  /// Held while the communicator is aborted; taken before mutex_.
  std::mutex abort_mutex_;
  /// Guards what follows; held for every call of NCCL but aborting.
  mutable std::mutex mutex_;
  /// Not to be used after a failure.
  std::shared_ptr<Slot> slot_;
  std::string failure_;
  std::chrono::milliseconds last_deadline_{kDefaultDeadline};
};

/// What is under way is none.
bool is_error(ncclResult_t status);

/// "NCCL: remote process exited or there was a network error (...)"
std::string error_text(ncclResult_t status);

/// Calls between ncclGroupStart and ncclGroupEnd; the first that fails is the answer.
ncclResult_t grouped(const std::function<ncclResult_t()>& calls);

}  // namespace scalecom::comm::nccl
