#include <gtest/gtest.h>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/error.h"
#include "tests/comm/device_array.h"
#include "tests/comm/gate.h"
#include "tests/comm/world.h"
#include "tests/graph.h"

/// Ranks of one process on arrays of the GPU that they share, beyond what tests of every backend
/// see.
namespace scalecom::comm::inproc {
namespace {

using testing::bytes_of;
using testing::to_device;
using testing::to_host;

class InprocDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (core::cuda::device_count() == 0) GTEST_SKIP() << "skipped: no CUDA device";
  }
  static core::Stream new_stream() { return core::Stream::cuda(core::Device::cuda()); }
};

template <typename Error>
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no such error";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// One of each call on arrays of 1, 2, 3, ... times the rank's number.
struct EveryCall {
  static constexpr std::int64_t kLength = 1000;

  EveryCall(Communicator& comm, const core::Stream& stream)
      : floats(to_device(std::vector<float>(kLength, static_cast<float>(comm.rank())), stream)),
        shares(to_device(std::vector<float>(kLength, static_cast<float>(comm.rank())), stream)),
        bytes(to_device(bytes_of(comm.rank(), kLength), stream)),
        message(to_device(bytes_of(comm.rank(), kLength), stream)),
        mine(to_device(bytes_of(comm.rank(), kLength), stream)),
        all(stream.device(), kLength * comm.size()),
        turned(stream.device(), kLength * comm.size()) {}

  void run(Communicator& comm, const core::Stream& stream) {
    const std::vector<std::int64_t> sizes(static_cast<std::size_t>(comm.size()), kLength);
    comm.all_reduce(floats.span(), stream);
    comm.reduce_scatter(shares.span(), stream);
    comm.broadcast(bytes.span(), comm.size() - 1, stream);
    comm.all_gather(mine.span(), all.span(), sizes, stream);
    comm.all_to_all(all.span(), sizes, turned.span(), sizes, stream);
    const int next = (comm.rank() + 1) % comm.size();
    const int last = (comm.rank() + comm.size() - 1) % comm.size();
    if (comm.rank() == 0) comm.send(message.span(), next, stream);
    comm.receive(message.span(), last, stream);
    if (comm.rank() != 0) comm.send(message.span(), next, stream);
  }

  void check(Communicator& comm, const core::Stream& stream) const {
    const int size = comm.size();
    const auto sum = static_cast<float>(size * (size - 1) / 2);
    EXPECT_EQ(to_host(floats, stream), std::vector<float>(kLength, sum));
    const Share own = share(kLength, size, comm.rank());
    EXPECT_EQ(to_host(shares, stream)[static_cast<std::size_t>(own.begin)], sum);
    EXPECT_EQ(to_host(bytes, stream), bytes_of(size - 1, kLength));
    EXPECT_EQ(to_host(message, stream), bytes_of(0, kLength));
    // What everybody gives this rank is its own piece of `all`, the same from all.
    std::vector<std::byte> expected;
    for (int r = 0; r < size; ++r) {
      const auto piece = bytes_of(comm.rank(), kLength);
      expected.insert(expected.end(), piece.begin(), piece.end());
    }
    EXPECT_EQ(to_host(turned, stream), expected);
  }

  core::Array<float> floats;
  core::Array<float> shares;
  core::Array<std::byte> bytes;
  core::Array<std::byte> message;
  core::Array<std::byte> mine;
  core::Array<std::byte> all;
  core::Array<std::byte> turned;
};

TEST_F(InprocDeviceTest, CallsReturnWhileTheDeviceIsHeldUp) {
  testing::Gate gate;
  run(4, [&](Communicator& comm) {
    const core::Stream stream = new_stream();
    EveryCall first(comm, stream);
    first.run(comm, stream);
    core::cuda::synchronize(stream);
    EveryCall calls(comm, stream);
    core::cuda::Event done(stream.device());
    comm.barrier();

    if (comm.rank() == 0) gate.close(stream);
    calls.run(comm, stream);
    done.record(stream);
    EXPECT_FALSE(done.is_done());
    comm.barrier();
    // Everybody has returned.
    EXPECT_FALSE(gate.is_open());
    comm.barrier();
    gate.open();
    calls.check(comm, stream);
  });
}

TEST_F(InprocDeviceTest, StreamsStayInOrderOverManyCalls) {
  constexpr int kSteps = 40;
  constexpr std::int64_t kBytes = 100'003;
  for (const int size : {2, 7, 32}) {
    run(size, [&](Communicator& comm) {
      const core::Stream stream = new_stream();
      // Each step gives other bytes from the same array, as soon as the stream allows.
      std::vector<core::Array<std::byte>> given;
      for (int step = 0; step < kSteps; ++step) {
        given.push_back(to_device(bytes_of(comm.rank() + 100 * step, kBytes), stream));
      }
      core::Array<std::byte> mine(stream.device(), kBytes);
      core::Array<std::byte> all(stream.device(), kBytes * size);
      core::Array<std::byte> kept(stream.device(), kBytes * kSteps);
      for (int step = 0; step < kSteps; ++step) {
        core::cuda::copy(mine.data(), given[static_cast<std::size_t>(step)].data(), kBytes, stream);
        static_cast<Communicator&>(comm).all_gather(mine.span(), all.span(), stream);
        const int from = (comm.rank() + step) % size;
        core::cuda::copy(kept.data() + step * kBytes, all.data() + from * kBytes, kBytes, stream);
      }
      const auto result = to_host(kept, stream);
      for (int step = 0; step < kSteps; ++step) {
        const auto expected = bytes_of((comm.rank() + step) % size + 100 * step, kBytes);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), result.begin() + step * kBytes))
            << "step " << step;
      }
    });
  }
}

TEST_F(InprocDeviceTest, WorldOfOneCanBeCaptured) {
  run(1, [&](Communicator& comm) {
    const core::Stream stream = new_stream();
    auto floats = to_device(std::vector<float>(100, 3.0F), stream);
    auto bytes = to_device(bytes_of(5, 100), stream);
    core::Array<std::byte> all(stream.device(), 100);
    core::Array<std::byte> turned(stream.device(), 100);
    const std::vector<std::int64_t> sizes{100};
    const scalecom::testing::Graph capture(stream, [&] {
      comm.all_reduce(floats.span(), stream);
      comm.reduce_scatter(floats.span(), stream);
      comm.broadcast(bytes.span(), 0, stream);
      comm.all_gather(bytes.span(), all.span(), sizes, stream);
      comm.all_to_all(all.span(), sizes, turned.span(), sizes, stream);
    });
    capture.replay();
    EXPECT_EQ(to_host(turned, stream), bytes_of(5, 100));
    EXPECT_EQ(to_host(floats, stream), std::vector<float>(100, 3.0F));
  });
}

TEST_F(InprocDeviceTest, CapturesOfSeveralRanksAreRefused) {
  run(2, [&](Communicator& comm) {
    const core::Stream stream = new_stream();
    auto floats = to_device(std::vector<float>(100, 1.0F), stream);
    const auto capture = [&] {
      const scalecom::testing::Graph captured(stream,
                                              [&] { comm.all_reduce(floats.span(), stream); });
    };
    const std::string error = error_of<core::UsageError>(capture);
    EXPECT_TRUE(has(error, "[all_reduce] the stream is being captured")) << error;
    comm.all_reduce(floats.span(), stream);
    EXPECT_EQ(to_host(floats, stream), std::vector<float>(100, 2.0F));
  });
}

TEST_F(InprocDeviceTest, ArraysLieWhereTheStreamIs) {
  run(2, [&](Communicator& comm) {
    const core::Stream stream = new_stream();
    std::vector<float> host(100, 1.0F);
    const std::string error = error_of<core::UsageError>([&] { comm.all_reduce(host, stream); });
    EXPECT_TRUE(has(error, "[all_reduce] an array on cpu for a stream of cuda:0")) << error;
    comm.all_reduce(host);
    EXPECT_EQ(host[0], 2.0F);
  });
}

TEST_F(InprocDeviceTest, HostAndDeviceDoNotMeet) {
  run(3, [&](Communicator& comm) {
    const core::Stream stream = new_stream();
    std::vector<float> host(100, 1.0F);
    auto floats = to_device(host, stream);
    const std::string error = error_of<core::PeerError>([&] {
      if (comm.rank() == 1) {
        comm.all_reduce(floats.span(), stream);
      } else {
        comm.all_reduce(host);
      }
    });
    EXPECT_TRUE(has(error, "rank 0 on cpu, rank 1 on cuda:0, rank 2 on cpu")) << error;
  });
  run(2, [&](Communicator& comm) {
    const core::Stream stream = new_stream();
    auto d_bytes = to_device(bytes_of(0, 10), stream);
    auto bytes = bytes_of(0, 10);
    const std::string error = error_of<core::PeerError>([&] {
      if (comm.rank() == 0) {
        comm.send(d_bytes.span(), 1, stream);
      } else {
        comm.receive(bytes, 0);
      }
    });
    EXPECT_TRUE(has(error, "rank 1 expects a message on cpu from rank 0")) << error;
  });
}

}  // namespace
}  // namespace scalecom::comm::inproc
