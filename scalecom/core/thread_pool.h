#pragma once

#include <cstdint>
#include <functional>

namespace scalecom::core {

/// Threads that the pool of this process uses, the caller's own included: SCALECOM_THREADS, or the
/// number of cores this process may run on.
int pool_threads();

/// Runs task(0) ... task(count - 1), in any order, on the calling thread and the pool's; returns
/// when all are done and throws the first failure. One pool serves every rank and learner of the
/// process, so that many of them never run more threads than there are cores. Every task has the
/// arithmetic of DefaultArithmetic, whatever the caller's. May be called from inside a task.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& task);

/// For tests and benchmarks: another number of threads from now on. Nothing may be running.
void set_pool_threads(int threads);

}  // namespace scalecom::core
