#include "scalecom/comm/traffic.h"

#include <algorithm>

namespace scalecom::comm {

namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);

}  // namespace

const char* to_string(Call call) {
  switch (call) {
    case Call::kBroadcast:
      return "broadcast";
    case Call::kAllReduce:
      return "all_reduce";
    case Call::kReduceScatter:
      return "reduce_scatter";
    case Call::kAllGather:
      return "all_gather";
    case Call::kAllToAll:
      return "all_to_all";
    case Call::kSendReceive:
      return "send_receive";
  }
  return "unknown call";
}

Traffic Counters::total() const {
  Traffic sum;
  for (const Traffic& traffic : by_call) sum += traffic;
  return sum;
}

Counters& Counters::operator+=(const Counters& other) {
  for (std::size_t i = 0; i < by_call.size(); ++i) by_call[i] += other.by_call[i];
  return *this;
}

Share share(std::int64_t elements, int size, int rank) {
  const std::int64_t whole = elements / size;
  const std::int64_t rest = elements % size;
  const std::int64_t begin = rank * whole + std::min<std::int64_t>(rank, rest);
  return {begin, begin + whole + (rank < rest ? 1 : 0)};
}

Traffic all_reduce_traffic(std::int64_t floats, int size, int rank) {
  const std::int64_t own = share(floats, size, rank).size();
  const std::int64_t bytes = (floats - own + (size - 1) * own) * kFloatBytes;
  return one_call(bytes, bytes);
}

Traffic reduce_scatter_traffic(std::int64_t floats, int size, int rank) {
  const std::int64_t own = share(floats, size, rank).size();
  return one_call((floats - own) * kFloatBytes, (size - 1) * own * kFloatBytes);
}

Traffic broadcast_traffic(std::int64_t bytes, int size, int rank, int root) {
  const std::int64_t own = share(bytes, size, rank).size();
  if (rank == root) return one_call((bytes - own) + (size - 1) * own, 0);
  return one_call((size - 2) * own, bytes);
}

Traffic all_gather_traffic(std::int64_t mine, std::int64_t all, int size) {
  return one_call((size - 1) * mine, all - mine);
}

}  // namespace scalecom::comm
