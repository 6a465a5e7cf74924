#include "scalecom/comm/nccl/watch.h"

#include <utility>

#include "scalecom/core/cuda/check.h"

namespace scalecom::comm::nccl {
namespace {

/// How long a failure may go unseen; while nothing is under way, nobody looks.
constexpr std::chrono::milliseconds kPeriod{5};

}  // namespace

Watch::Watch(Handle& handle) : handle_(handle), thread_([this] { watch(); }) {}

Watch::~Watch() {
  {
    const Lock lock(mutex_);
    ending_ = true;
  }
  bell_.notify_all();
  thread_.join();
}

core::cuda::Event Watch::event() {
  const Lock lock(mutex_);
  if (events_.empty()) return core::cuda::Event(handle_.device());
  core::cuda::Event event = std::move(events_.back());
  events_.pop_back();
  return event;
}

Watch::Entry Watch::begin(const Fabric::Operation& operation) {
  Entry entry{event(), event(), operation, std::nullopt};
  entry.before.record(operation.stream);
  return entry;
}

void Watch::follow(Entry entry) {
  entry.after.record(entry.operation.stream);
  // The stream may end before its work does; only the events are looked at from here on.
  entry.operation.stream = {};
  {
    const Lock lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  bell_.notify_all();
}

void Watch::watch() {
  // What this thread asks about events must not disturb captures that others have under way.
  auto mode = cudaStreamCaptureModeRelaxed;
  static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
  static_cast<void>(cudaSetDevice(handle_.device().index));
  Lock lock(mutex_);
  while (true) {
    bell_.wait(lock, [&] { return ending_ || !entries_.empty(); });
    if (entries_.empty()) return;
    const std::string failure = look();
    if (!failure.empty()) {
      // Before anything else is asked of CUDA, be it to give up an event: that may wait for a
      // thread that waits for kernels that only this ends.
      std::list<Entry> given_up;
      given_up.swap(entries_);
      lock.unlock();
      handle_.fail(failure);
      given_up.clear();
      lock.lock();
      continue;
    }
    bell_.wait_for(lock, kPeriod);
  }
}

std::string Watch::look() {
  const auto now = Clock::now();
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    try {
      if (entry->after.is_done()) {
        events_.push_back(std::move(entry->before));
        events_.push_back(std::move(entry->after));
        entry = entries_.erase(entry);
        continue;
      }
      if (!entry->until && entry->before.is_done()) {
        entry->until = now + entry->operation.deadline;
      }
    } catch (const std::exception& error) {
      return failure(entry->operation.call, error.what());
    }
    if (entry->until && now >= *entry->until) return Handle::late(entry->operation);
    ++entry;
  }
  return entries_.empty() ? std::string() : handle_.trouble(entries_.front().operation.call);
}

}  // namespace scalecom::comm::nccl
