#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::core::cuda {
namespace {

constexpr const char* kReason = "this build has no CUDA; build with `cmake --preset cuda`";

[[noreturn]] void refuse() {
  throw UsageError(concat("[cuda] ", kReason));
}

}  // namespace

int device_count() {
  return 0;
}
std::string why_none() {
  return kReason;
}
void require(Device device) {
  if (device.is_cuda()) throw UsageError(concat("[device] ", to_string(device), ": ", kReason));
}
Device device_of(const void* /*data*/) {
  return {};
}
MemoryInfo memory_info(Device /*device*/) {
  refuse();
}
std::shared_ptr<void> allocate_zeroed(Device /*device*/, std::int64_t /*bytes*/) {
  refuse();
}
std::int64_t peak_bytes(Device /*device*/) {
  return 0;
}
void reset_peak(Device /*device*/) {}
std::shared_ptr<void> allocate_pinned(std::int64_t /*bytes*/) {
  refuse();
}
std::shared_ptr<void> new_stream(Device /*device*/) {
  refuse();
}
void copy(void* /*to*/, const void* /*from*/, std::int64_t /*bytes*/, const Stream& /*stream*/) {
  refuse();
}
void set_zero(void* /*to*/, std::int64_t /*bytes*/, const Stream& /*stream*/) {
  refuse();
}
void synchronize(const Stream& /*stream*/) {}
bool is_capturing(const Stream& /*stream*/) {
  return false;
}
Event::Event(Device /*device*/) {
  refuse();
}
void Event::record(const Stream& /*stream*/) {}
void Event::make_wait(const Stream& /*stream*/) const {}
bool Event::is_done() const {
  return true;
}
void Event::wait() const {}

}  // namespace scalecom::core::cuda
