#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "scalecom/comm/communicator.h"

/// For tests that are the same on every backend. Started plainly, a test program makes worlds of
/// threads; started by mpirun, worlds of processes, or, with SCALECOM_TEST_RANKS=5,9, worlds of
/// that many threads divided among them. SCALECOM_TEST_BACKEND chooses others, with arrays on a
/// GPU: inproc-cuda, plainly; under mpirun nccl, or nccl-host for host arrays over NCCL. And gloo,
/// for the processes of mpirun as if torchrun had started them.
namespace scalecom::comm::testing {

struct World {
  std::string backend;
  int size;
};

std::ostream& operator<<(std::ostream& out, const World& world);
std::string name(const World& world);

/// The worlds of this run, those of `inproc_sizes` ranks where it has no processes, or those of
/// `cuda_sizes` where they share a GPU.
std::vector<World> worlds(const std::vector<int>& inproc_sizes, const std::vector<int>& cuda_sizes);

/// "" where a world can be run here, otherwise what to say to GTEST_SKIP().
std::string why_skipped(const World& world);

/// Whether NCCL is at work, which sums in an order of its own and does not compare calls.
bool is_nccl(const World& world);

using Body = std::function<void(Communicator&)>;

/// Runs `body` as those ranks of the world that are this process's; what one throws is thrown
/// again, as inproc::run does.
/// NCCL takes long to connect, so that a test that leaves its ranks in order can go on with those
/// of the test before.
enum class Ranks { kNew, kKept };
void run(const World& world, const Body& body, Ranks ranks = Ranks::kNew,
         std::chrono::milliseconds deadline = std::chrono::seconds(30));

/// The main() of such a program. It fails in every process where it fails in one. A test that has
/// lost peers on purpose ends the job, as MPI cannot end in the ordinary way after that.
enum class Ending { kOrdinary, kEndJob };
int run_all_tests(int argc, char** argv, Ending ending = Ending::kOrdinary);

/// Numbers whose sum depends on the order in which they are taken.
float awkward(int rank, std::int64_t index);
std::vector<float> awkward_array(int rank, std::int64_t length);
/// The sum over ranks 0 to size - 1, in their order. Kept, as every rank asks for it.
const std::vector<float>& awkward_sum(int size, std::int64_t length);

/// Whether `numbers` are those sums from `begin` on: to the bit, unless the world's order is
/// NCCL's.
bool is_sum(const World& world, std::span<const float> numbers, std::int64_t length,
            std::int64_t begin = 0);

/// Bytes that differ from rank to rank and from place to place.
std::byte byte_of(int rank, std::int64_t index);
std::vector<std::byte> bytes_of(int rank, std::int64_t length);

/// Equal to the bit, NaNs and signs of zero included.
bool same_bits(std::span<const float> a, std::span<const float> b);

}  // namespace scalecom::comm::testing
