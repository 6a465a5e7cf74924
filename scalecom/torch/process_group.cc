#include "scalecom/torch/process_group.h"

#include <algorithm>
#include <utility>

#include "scalecom/comm/arguments.h"
#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/torch/first_line.h"
#include "scalecom/torch/on_stream.h"

namespace scalecom::torch {
namespace {

using comm::Fabric;
using Work = c10::intrusive_ptr<c10d::Work>;

class GroupCommunicator final : public comm::Communicator {
 public:
  GroupCommunicator(c10::intrusive_ptr<c10d::ProcessGroup> group,
                    std::chrono::milliseconds deadline, std::vector<GroupPart> parts)
      : group_(std::move(group)),
        parts_(std::move(parts)),
        arguments_(group_->getRank(), group_->getSize()),
        deadline_(comm::checked_deadline(deadline)) {}

  int rank() const override { return group_->getRank(); }
  int size() const override { return group_->getSize(); }

  void broadcast(std::span<std::byte> data, int root, const core::Stream& stream) override {
    arguments_.check_root(root);
    run(Fabric::Call::kBroadcast, data, stream,
        [&] { return start_broadcast(data, root, stream); });
    counters_[comm::Call::kBroadcast] +=
        comm::broadcast_traffic(static_cast<std::int64_t>(data.size()), size(), rank(), root);
  }

  void all_reduce(std::span<float> data, const core::Stream& stream) override {
    run(Fabric::Call::kAllReduce, std::as_bytes(data), stream, [&] {
      std::vector<at::Tensor> tensors{view(data, stream)};
      c10d::AllreduceOptions options;
      options.timeout = deadline_;
      return group_->allreduce(tensors, options);
    });
    counters_[comm::Call::kAllReduce] +=
        comm::all_reduce_traffic(static_cast<std::int64_t>(data.size()), size(), rank());
  }

  void reduce_scatter(std::span<float> data, const core::Stream& stream) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                  std::span<const std::int64_t> sizes, const core::Stream& stream) override;
  void all_to_all(std::span<const std::byte> out, std::span<const std::int64_t> out_sizes,
                  std::span<std::byte> in, std::span<const std::int64_t> in_sizes,
                  const core::Stream& stream) override;

  void send(std::span<const std::byte> data, int to, const core::Stream& stream) override {
    arguments_.check_peer(Fabric::Call::kSend, to);
    run(Fabric::Call::kSend, data, stream, [&] {
      std::vector<at::Tensor> tensors{view(data, stream)};
      return group_->send(tensors, to, 0);
    });
    counters_[comm::Call::kSendReceive] +=
        comm::one_call(static_cast<std::int64_t>(data.size()), 0);
  }

  void receive(std::span<std::byte> data, int from, const core::Stream& stream) override {
    arguments_.check_peer(Fabric::Call::kReceive, from);
    run(Fabric::Call::kReceive, data, stream, [&] {
      std::vector<at::Tensor> tensors{view(data, stream)};
      return group_->recv(tensors, from, 0);
    });
    counters_[comm::Call::kSendReceive] +=
        comm::one_call(0, static_cast<std::int64_t>(data.size()));
  }

  void barrier() override {
    // A sum of nothing much: every backend has it, and it does not return before all have come.
    float token = 0;
    run(Fabric::Call::kBarrier, std::as_bytes(std::span(&token, 1)), {}, [&] {
      std::vector<at::Tensor> tensors{view(std::span(&token, 1), {})};
      c10d::AllreduceOptions options;
      options.timeout = deadline_;
      return group_->allreduce(tensors, options);
    });
  }

  std::unique_ptr<comm::Communicator> split(int color, int key) override;

  std::chrono::milliseconds deadline() const override { return deadline_; }
  void set_deadline(std::chrono::milliseconds deadline) override {
    deadline_ = comm::checked_deadline(deadline);
  }
  const comm::Counters& counters() const override { return counters_; }

 private:
  /// A tensor over an array of a stream's device.
  template <typename T>
  static at::Tensor view(std::span<T> data, const core::Stream& stream) {
    const at::ScalarType type =
        std::is_same_v<std::remove_const_t<T>, float> ? at::kFloat : at::kByte;
    return at::from_blob(const_cast<void*>(static_cast<const void*>(data.data())),
                         {static_cast<std::int64_t>(data.size())},
                         at::TensorOptions().dtype(type).device(device_of(stream)));
  }

  Work start_broadcast(std::span<std::byte> data, int root, const core::Stream& stream) {
    std::vector<at::Tensor> tensors{view(data, stream)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.timeout = deadline_;
    return group_->broadcast(tensors, options);
  }

  /// Starts a call in its place on the stream and, for arrays in host memory, waits for it.
  template <typename Start>
  void run(Fabric::Call call, std::span<const std::byte> data, const core::Stream& stream,
           const Start& start);

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::vector<GroupPart> parts_;
  comm::Arguments arguments_;
  std::chrono::milliseconds deadline_;
  comm::Counters counters_;
  std::string failure_;  // what the first said; empty as long as all is well
};

template <typename Start>
void GroupCommunicator::run(Fabric::Call call, std::span<const std::byte> data,
                            const core::Stream& stream, const Start& start) {
  if (!failure_.empty()) throw core::PeerError(comm::already_failed(call, failure_));
  if (size() == 1 || data.empty()) return;
  const auto until = Fabric::Clock::now() + deadline_;
  try {
    const OnStream on_stream(stream);
    const Work work = start();
    // On a GPU this makes the stream wait, not the host.
    work->wait(stream.device().is_cuda() ? kNoTimeout : deadline_);
  } catch (const std::exception& error) {
    // Backends word it in many ways, and do not tell who is late.
    const std::string late = Fabric::Clock::now() < until
                                 ? ""
                                 : core::concat("deadline of ", deadline_.count(), " ms passed: ");
    failure_ = comm::failure(call, late + first_line(error.what()));
    throw core::PeerError(failure_);
  }
}

std::unique_ptr<comm::Communicator> GroupCommunicator::split(int color, int key) {
  struct Wish {
    int color;
    int key;
  };
  const comm::Counters before = counters_;
  const std::vector<Wish> wishes = comm::gather(*this, Wish{color, key});
  counters_ = before;  // it is no traffic of the caller's
  std::vector<int> members;
  for (int r = 0; r < size(); ++r) {
    if (wishes[static_cast<std::size_t>(r)].color == color) members.push_back(r);
  }
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return wishes[static_cast<std::size_t>(a)].key < wishes[static_cast<std::size_t>(b)].key;
  });
  for (const GroupPart& part : parts_) {
    if (part.ranks == members) return make_communicator(part.group, deadline_);
  }
  throw core::UsageError(
      core::concat("[split] there is no process group of ", comm::rank_list(members),
                   "; make it with torch.distributed.new_group() and give it to the communicator"));
}

// Every rank's share goes to its owner. gloo has no call for it.
void GroupCommunicator::reduce_scatter(std::span<float> data, const core::Stream& stream) {
  const auto floats = static_cast<std::int64_t>(data.size());
  counters_[comm::Call::kReduceScatter] += comm::reduce_scatter_traffic(floats, size(), rank());
  if (stream.device().is_cuda() && floats % size() == 0) {
    run(Fabric::Call::kReduceScatter, std::as_bytes(data), stream, [&] {
      at::Tensor share = view(comm::part(data, comm::share(floats, size(), rank())), stream);
      at::Tensor whole = view(data, stream);
      c10d::ReduceScatterOptions options;
      options.timeout = deadline_;
      return group_->_reduce_scatter_base(share, whole, options);
    });
    return;
  }
  for (int r = 0; r < size(); ++r) {
    const auto share = comm::part(data, comm::share(floats, size(), r));
    run(Fabric::Call::kReduceScatter, std::as_bytes(share), stream, [&] {
      std::vector<at::Tensor> tensors{view(share, stream)};
      c10d::ReduceOptions options;
      options.rootRank = r;
      options.timeout = deadline_;
      return group_->reduce(tensors, options);
    });
  }
}

// As broadcasts, unless all sizes are the same: not every backend can gather others.
void GroupCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                                   std::span<const std::int64_t> sizes,
                                   const core::Stream& stream) {
  arguments_.check_all_gather(mine, all, sizes);
  std::int64_t begin = 0;
  std::vector<std::span<std::byte>> places;
  for (const std::int64_t size : sizes) {
    places.push_back(comm::part(all, begin, size));
    begin += size;
  }
  counters_[comm::Call::kAllGather] += comm::all_gather_traffic(
      static_cast<std::int64_t>(mine.size()), static_cast<std::int64_t>(all.size()), size());
  const auto own = places[static_cast<std::size_t>(rank())];
  if (own.data() != mine.data()) copy(own, mine, stream);
  const bool equal = std::all_of(sizes.begin(), sizes.end(),
                                 [&](std::int64_t size) { return size == sizes.front(); });
  if (stream.device().is_cuda() && equal) {
    run(Fabric::Call::kAllGather, all, stream, [&] {
      at::Tensor gathered = view(all, stream);
      at::Tensor given = view(own, stream);
      c10d::AllgatherOptions options;
      options.timeout = deadline_;
      return group_->_allgather_base(gathered, given, options);
    });
    return;
  }
  for (int r = 0; r < size(); ++r) {
    const auto place = places[static_cast<std::size_t>(r)];
    run(Fabric::Call::kAllGather, place, stream, [&] { return start_broadcast(place, r, stream); });
  }
}

void GroupCommunicator::all_to_all(std::span<const std::byte> out,
                                   std::span<const std::int64_t> out_sizes, std::span<std::byte> in,
                                   std::span<const std::int64_t> in_sizes,
                                   const core::Stream& stream) {
  arguments_.check_all_to_all(out, out_sizes, in, in_sizes);
  if (size() == 1) {
    copy(in, out, stream);
    return;
  }
  // One that gives nothing may still take: none is left out.
  std::span<const std::byte> any = out.empty() ? std::span<const std::byte>(in) : out;
  run(Fabric::Call::kAllToAll, any, stream, [&] {
    at::Tensor taken = view(in, stream);
    at::Tensor given = view(out, stream);
    std::vector<std::int64_t> taken_sizes(in_sizes.begin(), in_sizes.end());
    std::vector<std::int64_t> given_sizes(out_sizes.begin(), out_sizes.end());
    c10d::AllToAllOptions options;
    options.timeout = deadline_;
    return group_->alltoall_base(taken, given, taken_sizes, given_sizes, options);
  });
  const auto own = static_cast<std::size_t>(rank());
  counters_[comm::Call::kAllToAll] +=
      comm::one_call(static_cast<std::int64_t>(out.size()) - out_sizes[own],
                     static_cast<std::int64_t>(in.size()) - in_sizes[own]);
}

}  // namespace

std::unique_ptr<comm::Communicator> make_communicator(c10::intrusive_ptr<c10d::ProcessGroup> group,
                                                      std::chrono::milliseconds deadline,
                                                      std::vector<GroupPart> parts) {
  return std::make_unique<GroupCommunicator>(std::move(group), deadline, std::move(parts));
}

}  // namespace scalecom::torch
