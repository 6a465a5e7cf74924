#include "scalecom/core/cuda/runtime.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/native.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::core::cuda {
namespace {

struct Found {
  int devices = 0;
  std::string why_none;
};

Found find_devices() {
  Found found;
  const cudaError_t status = cudaGetDeviceCount(&found.devices);
  if (status == cudaSuccess && found.devices > 0) return found;
  found.devices = 0;
  if (status == cudaErrorInsufficientDriver) {
    found.why_none = concat("no NVIDIA driver, or one too old for CUDA ", CUDART_VERSION / 1000,
                            ", is installed");
  } else {
    found.why_none = status == cudaSuccess || status == cudaErrorNoDevice
                         ? "no CUDA device is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES"
                         : cudaGetErrorString(status);
  }
  static_cast<void>(cudaGetLastError());
  return found;
}

const Found& found() {
  static const Found once = find_devices();
  return once;
}

// Lets this thread allocate and free while streams are captured, its own or, in CUDA's default
// mode, those of any thread. Otherwise such a call fails and ends the capture with it.
class BesideCaptures {
 public:
  BesideCaptures() { exchange(); }
  ~BesideCaptures() { exchange(); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  void exchange() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// What this process has of the devices' memory.
class Holdings {
 public:
  void add(Device device, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    Held& held = held_[device.index];
    held.now += bytes;
    held.most = std::max(held.most, held.now);
  }
  std::int64_t most(Device device) {
    const std::lock_guard lock(mutex_);
    return held_[device.index].most;
  }
  void forget_most(Device device) {
    const std::lock_guard lock(mutex_);
    Held& held = held_[device.index];
    held.most = held.now;
  }

 private:
  struct Held {
    std::int64_t now = 0;
    std::int64_t most = 0;
  };
  std::mutex mutex_;
  std::map<int, Held> held_;
};

Holdings& holdings() {
  static auto* const all = new Holdings;  // memory may be freed as the process ends
  return *all;
}

std::string mebibytes(std::size_t bytes) {
  return concat((bytes + (1U << 20) - 1) >> 20, " MiB");
}

}  // namespace

void check(cudaError_t status, const char* operation) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw DeviceError(concat("[cuda] ", operation, ": ", cudaGetErrorString(status)));
}

DeviceScope::DeviceScope(Device device) {
  check(cudaGetDevice(&before_), "cudaGetDevice");
  changed_ = before_ != device.index;
  if (changed_) check(cudaSetDevice(device.index), "cudaSetDevice");
}

DeviceScope::~DeviceScope() {
  if (changed_) static_cast<void>(cudaSetDevice(before_));
}

int device_count() {
  return found().devices;
}

std::string why_none() {
  return found().why_none;
}

void require(Device device) {
  if (!device.is_cuda()) return;
  if (device_count() == 0) {
    throw UsageError(concat("[device] ", to_string(device), ": ", why_none()));
  }
  if (device.index < 0 || device.index >= device_count()) {
    throw UsageError(
        concat("[device] there is no ", to_string(device),
               "; this machine's CUDA devices are cuda:0 to cuda:", device_count() - 1));
  }
}

Device device_of(const void* data) {
  cudaPointerAttributes attributes{};
  if (device_count() == 0 || cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return {};
  }
  const bool on_device =
      attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
  return on_device ? Device::cuda(attributes.device) : Device{};
}

MemoryInfo memory_info(Device device) {
  const DeviceScope scope(device);
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

std::shared_ptr<void> allocate_zeroed(Device device, std::int64_t bytes) {
  require(device);
  const DeviceScope scope(device);
  const BesideCaptures beside;
  const auto size = static_cast<std::size_t>(bytes);
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, size);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    const MemoryInfo info = memory_info(device);
    throw DeviceError(concat("[cuda] ", to_string(device), " is out of memory: ", mebibytes(size),
                             " were asked for, ", mebibytes(static_cast<std::size_t>(info.free)),
                             " of ", mebibytes(static_cast<std::size_t>(info.total)), " are free"));
  }
  check(status, "cudaMalloc");
  std::shared_ptr<void> owner(data, [device, bytes](void* memory) {
    const BesideCaptures while_freed;
    static_cast<void>(cudaFree(memory));
    holdings().add(device, -bytes);
  });
  holdings().add(device, bytes);
  check(cudaMemset(data, 0, size), "cudaMemset");
  // Streams of ours do not wait for the default one, which the memset is on.
  check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
  return owner;
}

std::int64_t peak_bytes(Device device) {
  return holdings().most(device);
}

void reset_peak(Device device) {
  holdings().forget_most(device);
}

std::shared_ptr<void> allocate_pinned(std::int64_t bytes) {
  const BesideCaptures beside;
  void* data = nullptr;
  check(cudaMallocHost(&data, static_cast<std::size_t>(bytes)), "cudaMallocHost");
  return {data, [](void* memory) {
            const BesideCaptures while_freed;
            static_cast<void>(cudaFreeHost(memory));
          }};
}

std::shared_ptr<void> new_stream(Device device) {
  const DeviceScope scope(device);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return {stream,
          [](void* old) { static_cast<void>(cudaStreamDestroy(static_cast<cudaStream_t>(old))); }};
}

void copy(void* to, const void* from, std::int64_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  check(
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, native(stream)),
      "cudaMemcpyAsync");
}

void set_zero(void* to, std::int64_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  check(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), native(stream)), "cudaMemsetAsync");
}

void synchronize(const Stream& stream) {
  if (!stream.device().is_cuda()) return;
  check(cudaStreamSynchronize(native(stream)), "cudaStreamSynchronize");
}

bool is_capturing(const Stream& stream) {
  if (!stream.device().is_cuda()) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(native(stream), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

Event::Event(Device device) {
  const DeviceScope scope(device);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
        "cudaEventCreate");
  native_ = {event,
             [](void* old) { static_cast<void>(cudaEventDestroy(static_cast<cudaEvent_t>(old))); }};
}

void Event::record(const Stream& stream) {
  check(cudaEventRecord(static_cast<cudaEvent_t>(native_.get()), native(stream)),
        "cudaEventRecord");
}

void Event::make_wait(const Stream& stream) const {
  check(cudaStreamWaitEvent(native(stream), static_cast<cudaEvent_t>(native_.get()), 0),
        "cudaStreamWaitEvent");
}

bool Event::is_done() const {
  const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(native_.get()));
  if (status == cudaErrorNotReady) return false;
  check(status, "cudaEventQuery");
  return true;
}

void Event::wait() const {
  check(cudaEventSynchronize(static_cast<cudaEvent_t>(native_.get())), "cudaEventSynchronize");
}

}  // namespace scalecom::core::cuda
