#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>

#include "scalecom/comm/collectives.h"

/// Ranks that talk over NVIDIA's NCCL, one GPU each, in any processes.
///
/// A communicator keeps the contract of Communicator, with these differences:
/// - Sums are taken in the order that NCCL chooses, which may change with the length, the number of
///   ranks and the machines. Every rank gets the same bits of an all_reduce.
/// - NCCL does not say who is missing: errors name the operation only. Nor does it compare what the
///   ranks call it with: different calls or sizes end at the deadline, or in wrong results.
/// - A call on a CUDA stream returns when it is in its place there, which takes the caller about
///   80 us, as NCCL starts a thread for each so as not to block. The first of each kind waits until
///   NCCL has connected the ranks, within the deadline. After that a thread of the
///   communicator watches: the deadline runs from when the stream has come to the call, and when it
///   passes, or NCCL reports an error, NCCL's kernels are ended and every later call throws. What
///   the arrays of the call hold then is undefined.
/// - A call on a stream that is being captured becomes part of the graph. Nobody watches over a
///   graph's calls: a lost peer makes them wait for ever. They are counted once, when captured.
///   Graphs go before the communicator does.
/// - Arrays in host memory go through memory of the GPU. That is meant for small ones, by which the
///   ranks agree on something.
/// - Traffic is counted by the formulas of traffic.h. What NCCL really sends is its own business.
namespace scalecom::comm::nccl {

/// Whether this build has NCCL in it.
bool is_available();

/// By what ranks find each other: one of them makes it, all of them have it, by whatever means.
using Id = std::array<std::byte, 128>;
Id make_id();

/// Rank `rank` of `size`; every rank calls it, with the same id, which serves once. `device` is a
/// CUDA device that no other rank of the machine uses. PeerError where not all have come before the
/// deadline; UsageError where this build has no NCCL.
std::unique_ptr<Communicator> make_communicator(
    const Id& id, int rank, int size, core::Device device,
    std::chrono::milliseconds deadline = kDefaultDeadline);

/// The ranks of `other`, MPI's for example, which carries the id and is not needed afterwards. An
/// error of one rank before they connect is thrown by all.
std::unique_ptr<Communicator> make_communicator(
    Communicator& other, core::Device device,
    std::chrono::milliseconds deadline = kDefaultDeadline);

}  // namespace scalecom::comm::nccl
