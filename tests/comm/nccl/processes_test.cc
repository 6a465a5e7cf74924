#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "scalecom/comm/nccl/nccl.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "tests/comm/device_array.h"
#include "tests/comm/gate.h"
#include "tests/graph.h"

/// Ranks over NCCL that are lost or late, captured or held up. The test starts this program once
/// more for every rank, which then plays its part in a scene: a process that dies takes no test
/// with it.
namespace scalecom::comm::nccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::to_device;
using testing::to_host;
using Clock = std::chrono::steady_clock;

/// Of a part, not of a test.
void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error(what);
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const core::PeerError& error) {
    return error.what();
  }
  return "no PeerError";
}

void require_error(const std::string& error, const std::string& part) {
  require(error.find(part) != std::string::npos, "expected '" + part + "' in: " + error);
}

struct Part {
  Communicator& comm;
  core::Stream stream = core::Stream::cuda(core::Device::cuda());
  core::Array<float> ones = to_device(std::vector<float>(1000, 1.0F), stream);

  /// Both ranks have connected and all is well.
  void begin() {
    comm.all_reduce(ones.span(), stream);
    require_all(2.0F);
    comm.barrier();
  }
  void require_all(float value) {
    require(to_host(ones, stream) == std::vector<float>(1000, value),
            core::concat("not all numbers are ", value));
  }
  /// The stream comes to its end, and all calls from now on tell of `operation`.
  void require_failed(const std::string& operation) {
    const auto begin = Clock::now();
    core::cuda::synchronize(stream);
    require(Clock::now() - begin < seconds(20), "the stream was held up");
    for (int i = 0; i < 2; ++i) {
      const std::string error = error_of([&] { comm.barrier(); });
      require_error(error, "[barrier] this communicator can no longer be used");
      require_error(error, operation);
    }
    require_error(error_of([&] { comm.all_reduce(ones.span(), stream); }), operation);
    require_error(error_of([&] { std::ignore = comm.split(0, 0); }), operation);
  }
};

void late_on_a_stream(Part& part) {
  part.begin();
  part.comm.set_deadline(milliseconds(300));
  if (part.comm.rank() == 1) {
    std::this_thread::sleep_for(seconds(3));
    return;
  }
  part.comm.all_reduce(part.ones.span(), part.stream);
  part.comm.all_reduce(part.ones.span(), part.stream);
  part.require_failed("[all_reduce] deadline of 300 ms passed");
}

void dies_on_a_stream(Part& part) {
  part.begin();
  part.comm.set_deadline(seconds(5));
  if (part.comm.rank() == 1) std::raise(SIGKILL);
  std::this_thread::sleep_for(milliseconds(300));
  // Where NCCL has seen it already, the call itself says so.
  const std::string error = error_of([&] { part.comm.all_reduce(part.ones.span(), part.stream); });
  if (error != "no PeerError") require_error(error, "[all_reduce]");
  part.require_failed("[all_reduce]");
}

void dies_on_the_host(Part& part) {
  part.begin();
  part.comm.set_deadline(seconds(5));
  if (part.comm.rank() == 1) std::raise(SIGKILL);
  std::this_thread::sleep_for(milliseconds(300));
  std::vector<float> host(100);
  const std::string error = error_of([&] { part.comm.all_reduce(host); });
  std::fprintf(stderr, "told: %s\n", error.c_str());
  require_error(error, "[all_reduce]");
  part.require_failed("[all_reduce]");
}

void captured(Part& part) {
  part.begin();
  const auto length = part.ones.size();
  std::vector<std::int64_t> sizes{length, 0};
  core::Array<std::byte> all(part.stream.device(), length);
  const auto bytes = std::as_bytes(part.ones.span());
  {
    const scalecom::testing::Graph capture(part.stream, [&] {
      part.comm.all_reduce(part.ones.span(), part.stream);
      part.comm.all_gather(
          bytes.first(static_cast<std::size_t>(sizes[static_cast<std::size_t>(part.comm.rank())])),
          all.span(), sizes, part.stream);
    });
    for (int i = 0; i < 3; ++i) capture.replay();
    part.require_all(16.0F);
    // Between replays, plain calls go on.
    part.comm.all_reduce(part.ones.span(), part.stream);
    capture.replay();
    part.require_all(64.0F);
  }
  part.comm.barrier();
}

void held_up(Part& part) {
  part.begin();
  // The deadline runs from when the stream comes to the call.
  part.comm.set_deadline(milliseconds(500));
  testing::Gate gate;
  gate.close(part.stream);
  const auto begin = Clock::now();
  part.comm.all_reduce(part.ones.span(), part.stream);
  std::fprintf(stderr, "all_reduce returned after %.3f ms\n",
               std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  require(!gate.is_open(), "the call waited for the device");
  std::this_thread::sleep_for(milliseconds(1500));
  gate.open();
  part.require_all(4.0F);
  part.comm.set_deadline(seconds(30));
  part.comm.barrier();
}

void calls_take(Part& part) {
  part.begin();
  const auto begin = Clock::now();
  for (int i = 0; i < 50; ++i) part.comm.all_reduce(part.ones.span(), part.stream);
  const double issued = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  core::cuda::synchronize(part.stream);
  std::fprintf(stderr, "a call takes its thread %.1f us\n", issued / 50);
  part.comm.barrier();
}

const std::map<std::string, void (*)(Part&)> kScenes = {
    {"late_on_a_stream", late_on_a_stream},
    {"dies_on_a_stream", dies_on_a_stream},
    {"dies_on_the_host", dies_on_the_host},
    {"captured", captured},
    {"held_up", held_up},
    {"calls_take", calls_take},
};

/// Rank 0 makes the id and leaves it in a file, under its name when it is complete.
Id share_id(int rank, const std::string& path) {
  if (rank == 0) {
    const Id id = make_id();
    std::ofstream(path + ".new", std::ios::binary)
        .write(reinterpret_cast<const char*>(id.data()), static_cast<std::streamsize>(id.size()));
    std::filesystem::rename(path + ".new", path);
    return id;
  }
  for (int i = 0; i < 3000 && !std::filesystem::exists(path); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  Id id{};
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(id.data()), static_cast<std::streamsize>(id.size()));
  return id;
}

int play(const std::string& scene) {
  const int rank = std::atoi(std::getenv("SCALECOM_TEST_RANK"));
  try {
    const Id id = share_id(rank, std::getenv("SCALECOM_TEST_ID"));
    if (scene == "comes_alone") {
      const auto begin = Clock::now();
      const std::string error =
          error_of([&] { make_communicator(id, 0, 2, core::Device::cuda(), seconds(1)); });
      require_error(error, "deadline of 1000 ms passed before all ranks had come");
      require(Clock::now() - begin < seconds(20), "it took too long");
      return 0;
    }
    const auto comm = make_communicator(id, rank, 2, core::Device::cuda(), seconds(30));
    Part part{*comm};
    kScenes.at(scene)(part);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
}

class NcclProcessesTest : public ::testing::Test {
 protected:
  static constexpr int kKilled = -1;

  void SetUp() override {
    if (core::cuda::device_count() == 0) GTEST_SKIP() << "skipped: no CUDA device";
    if (!is_available()) GTEST_SKIP() << "skipped: no NCCL in this build";
  }

  /// Starts the ranks of a scene, and holds them to how they should end.
  static void expect(const std::string& scene, const std::vector<int>& endings) {
    const std::string path = ::testing::TempDir() + "scalecom_id_" + std::to_string(::getpid());
    std::filesystem::remove(path);
    std::vector<pid_t> ranks;
    for (std::size_t rank = 0; rank < endings.size(); ++rank) {
      ranks.push_back(start(scene, static_cast<int>(rank), path));
    }
    for (std::size_t rank = 0; rank < endings.size(); ++rank) {
      EXPECT_EQ(ending(ranks[rank]), endings[rank]) << "rank " << rank << " of " << scene;
    }
    std::filesystem::remove(path);
  }

 private:
  static pid_t start(const std::string& scene, int rank, const std::string& path) {
    std::vector<std::string> variables = {
        "SCALECOM_TEST_SCENE=" + scene, "SCALECOM_TEST_RANK=" + std::to_string(rank),
        "SCALECOM_TEST_ID=" + path,     "NCCL_HOSTID=rank" + std::to_string(rank),
        "NCCL_SOCKET_IFNAME=lo",        "NCCL_IB_DISABLE=1"};
    std::vector<char*> environment;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      environment.push_back(*variable);
    }
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    std::string program = "/proc/self/exe";
    char* arguments[] = {program.data(), nullptr};
    pid_t process = 0;
    EXPECT_EQ(
        ::posix_spawn(&process, program.c_str(), nullptr, nullptr, arguments, environment.data()),
        0);
    return process;
  }

  /// The exit status, or kKilled; who does not end by itself is ended.
  static int ending(pid_t process) {
    int status = 0;
    for (int i = 0; i < 6000; ++i) {
      if (::waitpid(process, &status, WNOHANG) == process) {
        return WIFEXITED(status) ? WEXITSTATUS(status) : kKilled;
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
    ADD_FAILURE() << "a rank hangs";
    ::kill(process, SIGKILL);
    ::waitpid(process, &status, 0);
    return kKilled;
  }
};

TEST_F(NcclProcessesTest, PeerThatNeverCallsEndsWhatWaitsForIt) {
  expect("late_on_a_stream", {0, 0});
}
TEST_F(NcclProcessesTest, PeerThatDiesIsToldByALaterCall) {
  expect("dies_on_a_stream", {0, kKilled});
}
TEST_F(NcclProcessesTest, PeerThatDiesIsToldAtOnceOnTheHost) {
  expect("dies_on_the_host", {0, kKilled});
}
TEST_F(NcclProcessesTest, PeerThatNeverComes) {
  expect("comes_alone", {0});
}
TEST_F(NcclProcessesTest, CallsCanBeCaptured) {
  expect("captured", {0, 0});
}
TEST_F(NcclProcessesTest, CallsReturnWhileTheDeviceIsHeldUp) {
  expect("held_up", {0, 0});
}
TEST_F(NcclProcessesTest, CallsAreQuick) {
  expect("calls_take", {0, 0});
}

}  // namespace
}  // namespace scalecom::comm::nccl

int main(int argc, char** argv) {
  if (const char* scene = std::getenv("SCALECOM_TEST_SCENE")) {
    return scalecom::comm::nccl::play(scene);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
