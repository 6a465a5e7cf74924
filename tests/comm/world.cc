#include "tests/comm/world.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "scalecom/comm/hybrid/hybrid.h"
#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/comm/mpi/mpi.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"

namespace scalecom::comm::testing {
namespace {

void run_hybrid(int size, const Body& body, std::chrono::milliseconds deadline) {
  auto ends = hybrid::make_world(size, deadline);
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

}  // namespace

std::ostream& operator<<(std::ostream& out, const World& world) {
  return out << world.size << " ranks, " << world.backend;
}

std::string name(const World& world) {
  return world.backend + std::to_string(world.size);
}

std::vector<World> worlds(const std::vector<int>& inproc_sizes) {
  std::vector<World> worlds;
  if (!mpi::is_launched()) {
    for (const int size : inproc_sizes) worlds.push_back({"inproc", size});
  } else if (const char* ranks = std::getenv("SCALECOM_TEST_RANKS")) {
    for (const auto& size : core::split(ranks, ',')) worlds.push_back({"hybrid", std::stoi(size)});
  } else {
    worlds.push_back({"mpi", std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE"))});
  }
  return worlds;
}

void run(const World& world, const Body& body, std::chrono::milliseconds deadline) {
  if (world.backend == "inproc") {
    inproc::run(world.size, body, deadline);
  } else if (world.backend == "hybrid") {
    run_hybrid(world.size, body, deadline);
  } else {
    body(*mpi::make_communicator(deadline));
  }
}

int run_all_tests(int argc, char** argv, Ending ending) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!mpi::is_launched()) return RUN_ALL_TESTS();
  const mpi::Session session;
  const int result = agree(RUN_ALL_TESTS());
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
