#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "scalecom/core/device.h"
#include "scalecom/core/stream.h"

/// What this library asks of the CUDA runtime, without its types. Where CUDA is not built in, there
/// are no devices, and everything that needs one throws UsageError and says so.
namespace scalecom::core::cuda {

/// How many devices there are; 0 where there is no driver, or no CUDA in this build.
int device_count();

/// "" where there is a device; otherwise why there is none, and what to do.
std::string why_none();

/// UsageError where the machine does not have this device. Nothing to say for the CPU.
void require(Device device);

/// The device that holds the array at `data`; the CPU for anything that CUDA does not know.
Device device_of(const void* data);

struct MemoryInfo {
  std::int64_t free = 0;
  std::int64_t total = 0;
};
MemoryInfo memory_info(Device device);

/// Device memory, all zero; freed with its last owner. DeviceError, saying how much was asked for
/// and how much there is, where there is too little. Not while a stream of this thread is captured;
/// it may be freed then.
std::shared_ptr<void> allocate_zeroed(Device device, std::int64_t bytes);

/// The most that allocate_zeroed() has had given out of a device, to this process, at any time
/// since the last reset_peak().
std::int64_t peak_bytes(Device device);
void reset_peak(Device device);

/// Host memory that copies to and from a device need not stop for.
std::shared_ptr<void> allocate_pinned(std::int64_t bytes);

/// A cudaStream_t that does not wait for the default stream.
std::shared_ptr<void> new_stream(Device device);

/// In order on `stream`, a CUDA stream. Either side of a copy may be on the host; pageable host
/// memory makes a copy wait.
void copy(void* to, const void* from, std::int64_t bytes, const Stream& stream);
void set_zero(void* to, std::int64_t bytes, const Stream& stream);

/// Returns when everything on `stream` is done; DeviceError where some of it failed. Nothing to do
/// for a stream that is not CUDA's.
void synchronize(const Stream& stream);

/// Whether what is put on `stream` is being captured into a graph and not run.
bool is_capturing(const Stream& stream);

/// A mark in a stream, which others can wait for without the host.
class Event {
 public:
  explicit Event(Device device);
  void record(const Stream& stream);
  /// What is put on `stream` from now on waits for the last record(); nothing to wait for before
  /// it.
  void make_wait(const Stream& stream) const;
  /// Whether all before the last record() is done.
  bool is_done() const;
  /// Returns then; the calling thread sleeps meanwhile.
  void wait() const;

 private:
  std::shared_ptr<void> native_;
};

}  // namespace scalecom::core::cuda
