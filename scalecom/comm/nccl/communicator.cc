#include "scalecom/comm/nccl/communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/native.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::comm::nccl {
namespace {

/// Arrays in staging begin at multiples of this, as those that CUDA allocates.
constexpr std::int64_t kAlignment = 256;

std::int64_t length(std::span<const std::byte> data) {
  return static_cast<std::int64_t>(data.size());
}

float* floats(std::span<std::byte> data) {
  return reinterpret_cast<float*>(data.data());
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::unique_ptr<Handle> handle, int rank, int size,
                                   std::chrono::milliseconds deadline)
    : handle_(std::move(handle)),
      rank_(rank),
      size_(size),
      arguments_(rank, size),
      deadline_(checked_deadline(deadline)) {}

Fabric::Operation NcclCommunicator::begin(Fabric::Call call, const core::Stream& stream) const {
  if (stream.device().is_cuda() && stream.device() != handle_->device()) {
    throw core::UsageError(core::concat("[", to_string(call), "] a stream of ",
                                        core::to_string(stream.device()), " for a rank on ",
                                        core::to_string(handle_->device())));
  }
  handle_->check(call);
  return {call, deadline_, Fabric::Clock::now() + deadline_, stream};
}

void NcclCommunicator::check_place(const Operation& operation, const Arrays& arrays) const {
  comm::check_place(operation.call, arrays.in, operation.stream);
  comm::check_place(operation.call, arrays.out, operation.stream);
}

void NcclCommunicator::run(const Operation& operation, const Arrays& arrays, const Body& body) {
  try {
    const core::cuda::DeviceScope scope(handle_->device());
    if (operation.stream.device().is_cuda()) {
      run_on_device(operation, arrays, body);
    } else {
      run_on_host(operation, arrays, body);
    }
  } catch (const core::UsageError&) {
    throw;
  } catch (const std::exception& error) {
    handle_->fail(error.what());
    throw;
  }
}

void NcclCommunicator::run_on_device(const Operation& operation, const Arrays& arrays,
                                     const Body& body) {
  const auto issue = [&] {
    handle_->run(operation, [&](ncclComm_t comm) {
      return body(arrays.in, arrays.out, comm, core::cuda::native(operation.stream));
    });
  };
  if (core::cuda::is_capturing(operation.stream)) {
    issue();
    return;
  }
  if (!watch_) watch_.emplace(*handle_);
  watch_->run(operation, issue);
}

void NcclCommunicator::run_on_host(Operation operation, const Arrays& arrays, const Body& body) {
  if (!stream_) {
    stream_ = core::Stream::cuda(handle_->device());
    done_.emplace(handle_->device());
  }
  operation.stream = *stream_;
  const std::int64_t out_begin = (length(arrays.in) + kAlignment - 1) / kAlignment * kAlignment;
  if (staging_.size() < out_begin + length(arrays.out)) {
    staging_ = core::Array<std::byte>(handle_->device(), out_begin + length(arrays.out));
  }
  const Arrays d_arrays{part(staging_.span(), 0, length(arrays.in)),
                        part(staging_.span(), out_begin, length(arrays.out))};
  core::cuda::copy(staging_.data(), arrays.in.data(), length(arrays.in), *stream_);
  if (arrays.reads_out) {
    core::cuda::copy(d_arrays.out.data(), arrays.out.data(), length(arrays.out), *stream_);
  }
  handle_->run(operation, [&](ncclComm_t comm) {
    return body(d_arrays.in, d_arrays.out, comm, core::cuda::native(*stream_));
  });
  wait(operation);
  core::cuda::copy(arrays.out.data(), d_arrays.out.data(), length(arrays.out), *stream_);
  core::cuda::synchronize(*stream_);
}

void NcclCommunicator::wait(const Operation& operation) {
  done_->record(operation.stream);
  for (Backoff backoff; !done_->is_done();) {
    backoff.pause();
    handle_->check_progress(operation);
  }
}

void NcclCommunicator::broadcast(std::span<std::byte> data, int root, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kBroadcast, stream);
  arguments_.check_root(root);
  const Arrays arrays{{}, data, true};
  check_place(operation, arrays);
  if (size_ == 1 || data.empty()) return;
  run(operation, arrays, [&](auto /*in*/, auto d_out, ncclComm_t comm, cudaStream_t s) {
    return ncclBroadcast(d_out.data(), d_out.data(), d_out.size(), ncclInt8, root, comm, s);
  });
  counters_[Call::kBroadcast] += broadcast_traffic(length(data), size_, rank_, root);
}

void NcclCommunicator::all_reduce(std::span<float> data, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kAllReduce, stream);
  const Arrays arrays{{}, std::as_writable_bytes(data), true};
  check_place(operation, arrays);
  if (size_ == 1 || data.empty()) return;
  run(operation, arrays, [&](auto /*in*/, auto d_out, ncclComm_t comm, cudaStream_t s) {
    return ncclAllReduce(d_out.data(), d_out.data(), data.size(), ncclFloat32, ncclSum, comm, s);
  });
  counters_[Call::kAllReduce] +=
      all_reduce_traffic(static_cast<std::int64_t>(data.size()), size_, rank_);
}

void NcclCommunicator::reduce_scatter(std::span<float> data, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kReduceScatter, stream);
  const Arrays arrays{{}, std::as_writable_bytes(data), true};
  check_place(operation, arrays);
  if (size_ == 1 || data.empty()) return;
  const auto count = static_cast<std::int64_t>(data.size());
  run(operation, arrays, [&](auto /*in*/, auto d_out, ncclComm_t comm, cudaStream_t s) {
    float* const d_data = floats(d_out);
    const Share own = share(count, size_, rank_);
    if (count % size_ == 0) {
      return ncclReduceScatter(d_data, d_data + own.begin, static_cast<std::size_t>(own.size()),
                               ncclFloat32, ncclSum, comm, s);
    }
    return grouped([&] {
      for (int r = 0; r < size_; ++r) {
        const Share theirs = share(count, size_, r);
        if (theirs.size() == 0) continue;
        float* const d_share = d_data + theirs.begin;
        const ncclResult_t status =
            ncclReduce(d_share, d_share, static_cast<std::size_t>(theirs.size()), ncclFloat32,
                       ncclSum, r, comm, s);
        if (is_error(status)) return status;
      }
      return ncclSuccess;
    });
  });
  counters_[Call::kReduceScatter] += reduce_scatter_traffic(count, size_, rank_);
}

void NcclCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                                  std::span<const std::int64_t> sizes, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kAllGather, stream);
  arguments_.check_all_gather(mine, all, sizes);
  const Arrays arrays{mine, all};
  check_place(operation, arrays);
  if (all.empty()) return;
  const bool equal = std::ranges::all_of(sizes, [&](auto size) { return size == sizes[0]; });
  run(operation, arrays, [&](auto d_in, auto d_out, ncclComm_t comm, cudaStream_t s) {
    if (equal) return ncclAllGather(d_in.data(), d_out.data(), d_in.size(), ncclInt8, comm, s);
    return grouped([&] {
      std::int64_t begin = 0;
      for (int r = 0; r < size_; ++r) {
        const std::int64_t size = sizes[static_cast<std::size_t>(r)];
        const auto theirs = part(d_out, begin, size);
        begin += size;
        if (size == 0) continue;
        const std::byte* const d_from = r == rank_ ? d_in.data() : theirs.data();
        const ncclResult_t status =
            ncclBroadcast(d_from, theirs.data(), theirs.size(), ncclInt8, r, comm, s);
        if (is_error(status)) return status;
      }
      return ncclSuccess;
    });
  });
  counters_[Call::kAllGather] += all_gather_traffic(length(mine), length(all), size_);
}

void NcclCommunicator::all_to_all(std::span<const std::byte> out,
                                  std::span<const std::int64_t> out_sizes, std::span<std::byte> in,
                                  std::span<const std::int64_t> in_sizes,
                                  const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kAllToAll, stream);
  arguments_.check_all_to_all(out, out_sizes, in, in_sizes);
  const Arrays arrays{out, in};
  check_place(operation, arrays);
  if (out.empty() && in.empty()) return;
  run(operation, arrays, [&](auto d_in, auto d_out, ncclComm_t comm, cudaStream_t s) {
    return grouped([&] {
      std::int64_t out_begin = 0;
      std::int64_t in_begin = 0;
      for (int r = 0; r < size_; ++r) {
        const auto at = static_cast<std::size_t>(r);
        const auto given = part(d_in, out_begin, out_sizes[at]);
        const auto taken = part(d_out, in_begin, in_sizes[at]);
        out_begin += out_sizes[at];
        in_begin += in_sizes[at];
        ncclResult_t status = ncclSuccess;
        if (!given.empty()) status = ncclSend(given.data(), given.size(), ncclInt8, r, comm, s);
        if (is_error(status)) return status;
        if (!taken.empty()) status = ncclRecv(taken.data(), taken.size(), ncclInt8, r, comm, s);
        if (is_error(status)) return status;
      }
      return ncclSuccess;
    });
  });
  const std::int64_t own = out_sizes[static_cast<std::size_t>(rank_)];
  counters_[Call::kAllToAll] += one_call(length(out) - own, length(in) - own);
}

void NcclCommunicator::send(std::span<const std::byte> data, int to, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kSend, stream);
  arguments_.check_peer(operation.call, to);
  const Arrays arrays{data, {}};
  check_place(operation, arrays);
  if (data.empty()) return;
  run(operation, arrays, [&](auto d_in, auto /*out*/, ncclComm_t comm, cudaStream_t s) {
    return ncclSend(d_in.data(), d_in.size(), ncclInt8, to, comm, s);
  });
  counters_[Call::kSendReceive] += one_call(length(data), 0);
}

void NcclCommunicator::receive(std::span<std::byte> data, int from, const core::Stream& stream) {
  const Operation operation = begin(Fabric::Call::kReceive, stream);
  arguments_.check_peer(operation.call, from);
  const Arrays arrays{{}, data};
  check_place(operation, arrays);
  if (data.empty()) return;
  run(operation, arrays, [&](auto /*in*/, auto d_out, ncclComm_t comm, cudaStream_t s) {
    return ncclRecv(d_out.data(), d_out.size(), ncclInt8, from, comm, s);
  });
  counters_[Call::kSendReceive] += one_call(0, length(data));
}

void NcclCommunicator::barrier() {
  const Operation operation = begin(Fabric::Call::kBarrier);
  if (size_ == 1) return;
  std::byte token{};
  run(operation, {{}, {&token, 1}}, [&](auto /*in*/, auto d_out, ncclComm_t comm, cudaStream_t s) {
    return ncclAllReduce(d_out.data(), d_out.data(), 1, ncclInt8, ncclSum, comm, s);
  });
}

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key) {
  const Operation operation = begin(Fabric::Call::kSplit);
  struct Choice {
    int color;
    int key;
  };
  const Choice mine{color, key};
  std::vector<Choice> all(static_cast<std::size_t>(size_));
  run(operation, {std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))},
      [&](auto d_in, auto d_out, ncclComm_t comm, cudaStream_t s) {
        return ncclAllGather(d_in.data(), d_out.data(), d_in.size(), ncclInt8, comm, s);
      });
  // NCCL's colors are 0 or more: each is told by the first rank that has it. Its keys, too, are
  // made from the order that is wanted here.
  int first = -1;
  int new_rank = 0;
  int new_size = 0;
  for (int r = 0; r < size_; ++r) {
    const Choice& theirs = all[static_cast<std::size_t>(r)];
    if (theirs.color != color) continue;
    if (first < 0) first = r;
    ++new_size;
    if (std::pair(theirs.key, r) < std::pair(key, rank_)) ++new_rank;
  }
  return std::make_unique<NcclCommunicator>(handle_->split(operation, first, new_rank), new_rank,
                                            new_size, deadline_);
}

}  // namespace scalecom::comm::nccl
