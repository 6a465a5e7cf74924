#include "tests/comm/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "scalecom/comm/hybrid/hybrid.h"
#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/comm/mpi/mpi.h"
#include "scalecom/comm/nccl/nccl.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"
#include "tests/comm/gloo.h"
#include "tests/comm/mirror.h"

namespace scalecom::comm::testing {
namespace {

void run_ends(std::vector<std::unique_ptr<Communicator>> ends, const Body& body) {
  std::vector<std::exception_ptr> failures(ends.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          const std::unique_ptr<Communicator> end = std::move(ends[i]);
          body(*end);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// 1 where the tests failed in any process.
int agree(int result) {
  try {
    float failed = result == 0 ? 0.0F : 1.0F;
    mpi::make_communicator(std::chrono::seconds(60))->all_reduce({&failed, 1});
    return failed == 0.0F ? 0 : 1;
  } catch (const std::exception&) {
    return 1;
  }
}

/// NCCL refuses ranks of one machine that share a GPU, so each says that it is a machine.
void pretend_to_be_a_machine() {
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  ::setenv("NCCL_HOSTID", core::concat("rank", rank != nullptr ? rank : "0").c_str(), 0);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  ::setenv("NCCL_IB_DISABLE", "1", 0);
}

std::unique_ptr<Communicator>& kept_ranks() {
  static std::unique_ptr<Communicator> ranks;
  return ranks;
}

std::unique_ptr<Communicator> new_nccl_ranks() {
  const auto processes = mpi::make_communicator(std::chrono::seconds(60));
  return nccl::make_communicator(*processes,
                                 core::Device::cuda(processes->rank() % core::cuda::device_count()),
                                 std::chrono::seconds(60));
}

void run_nccl(const World& world, const Body& body, Ranks ranks,
              std::chrono::milliseconds deadline) {
  std::unique_ptr<Communicator> own;
  if (ranks == Ranks::kNew) own = new_nccl_ranks();
  if (ranks == Ranks::kKept && !kept_ranks()) kept_ranks() = new_nccl_ranks();
  Communicator& real = own ? *own : *kept_ranks();
  real.set_deadline(deadline);
  const bool on_host = world.backend == "nccl-host";
  const core::Device device = core::Device::cuda(real.rank() % core::cuda::device_count());
  Mirror mirror(real, on_host ? core::Stream() : core::Stream::cuda(device),
                on_host ? Mirror::Tells::kAtOnce : Mirror::Tells::kLater);
  body(mirror);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const World& world) {
  return out << world.size << " ranks, " << world.backend;
}

std::string name(const World& world) {
  std::string name = world.backend + std::to_string(world.size);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::vector<World> worlds(const std::vector<int>& inproc_sizes,
                          const std::vector<int>& cuda_sizes) {
  const char* const chosen = std::getenv("SCALECOM_TEST_BACKEND");
  const std::string backend = chosen != nullptr ? chosen : "";
  const char* const processes = std::getenv("OMPI_COMM_WORLD_SIZE");
  std::vector<World> worlds;
  if (!mpi::is_launched()) {
    const bool on_gpu = backend == "inproc-cuda";
    for (const int size : on_gpu ? cuda_sizes : inproc_sizes) {
      worlds.push_back({on_gpu ? backend : "inproc", size});
    }
  } else if (const char* ranks = std::getenv("SCALECOM_TEST_RANKS")) {
    for (const auto& size : core::split(ranks, ',')) {
      worlds.push_back({backend.empty() ? "hybrid" : backend, std::stoi(size)});
    }
  } else {
    worlds.push_back({backend.empty() ? "mpi" : backend, std::atoi(processes)});
  }
  return worlds;
}

bool is_nccl(const World& world) {
  return world.backend.starts_with("nccl");
}

std::string why_skipped(const World& world) {
  if (!is_nccl(world) && world.backend != "inproc-cuda") return {};
  if (core::cuda::device_count() == 0) return "skipped: no CUDA device";
  return is_nccl(world) && !nccl::is_available() ? "skipped: no NCCL in this build" : "";
}

void run(const World& world, const Body& body, Ranks ranks, std::chrono::milliseconds deadline) {
  if (world.backend == "inproc") {
    inproc::run(world.size, body, deadline);
  } else if (world.backend == "inproc-cuda") {
    const auto on_device = [&](Communicator& comm) {
      Mirror mirror(comm, core::Stream::cuda(core::Device::cuda()), Mirror::Tells::kAtOnce);
      body(mirror);
    };
    inproc::run(world.size, on_device, deadline);
  } else if (world.backend == "hybrid") {
    run_ends(hybrid::make_world(world.size, deadline), body);
  } else if (world.backend == "gloo") {
    run_ends(make_gloo_world(world.size, deadline), body);
  } else if (is_nccl(world)) {
    run_nccl(world, body, ranks, deadline);
  } else {
    body(*mpi::make_communicator(deadline));
  }
}

int run_all_tests(int argc, char** argv, Ending ending) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!mpi::is_launched()) return RUN_ALL_TESTS();
  pretend_to_be_a_machine();
  const mpi::Session session;
  const int own = RUN_ALL_TESTS();
  kept_ranks().reset();
  const int result = agree(own);
  if (result != 0 || ending == Ending::kEndJob) mpi::Session::end_job(result);
  return result;
}

float awkward(int rank, std::int64_t index) {
  const std::uint64_t bits =
      core::combine(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(index));
  switch (bits % 8) {
    case 0:
      return 1e8F;
    case 1:
      return -1e8F;
    case 2:
      return 1.0F;
    case 3:
      return -0.0F;
    case 4:
      return 1e-41F;
    default:
      return std::ldexp(static_cast<float>((bits >> 8) % 65536) - 32768.0F,
                        static_cast<int>((bits >> 32) % 40) - 20);
  }
}

std::vector<float> awkward_array(int rank, std::int64_t length) {
  std::vector<float> values(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = awkward(rank, static_cast<std::int64_t>(i));
  }
  return values;
}

const std::vector<float>& awkward_sum(int size, std::int64_t length) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::int64_t>, std::vector<float>> known;
  const std::lock_guard lock(mutex);
  auto& sums = known[{size, length}];
  if (!sums.empty() || length == 0) return sums;
  sums = awkward_array(0, length);
  for (int rank = 1; rank < size; ++rank) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += awkward(rank, static_cast<std::int64_t>(i));
    }
  }
  return sums;
}

bool is_sum(const World& world, std::span<const float> numbers, std::int64_t length,
            std::int64_t begin) {
  const auto sums = std::span(awkward_sum(world.size, length))
                        .subspan(static_cast<std::size_t>(begin), numbers.size());
  if (!is_nccl(world)) return same_bits(numbers, sums);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double magnitude = 0;
    for (int rank = 0; rank < world.size; ++rank) {
      magnitude += std::abs(awkward(rank, begin + static_cast<std::int64_t>(i)));
    }
    const double bound = magnitude * world.size * std::numeric_limits<float>::epsilon();
    if (!(std::abs(double{numbers[i]} - double{sums[i]}) <= bound)) return false;
  }
  return true;
}

std::byte byte_of(int rank, std::int64_t index) {
  return static_cast<std::byte>(
      core::combine(static_cast<std::uint64_t>(rank) + 1000, static_cast<std::uint64_t>(index)));
}

std::vector<std::byte> bytes_of(int rank, std::int64_t length) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = byte_of(rank, static_cast<std::int64_t>(i));
  }
  return bytes;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace scalecom::comm::testing
