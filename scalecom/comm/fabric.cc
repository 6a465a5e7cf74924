#include "scalecom/comm/fabric.h"

#include "scalecom/core/text.h"

namespace scalecom::comm {

const char* to_string(Fabric::Call call) {
  switch (call) {
    case Fabric::Call::kBroadcast:
      return "broadcast";
    case Fabric::Call::kAllReduce:
      return "all_reduce";
    case Fabric::Call::kReduceScatter:
      return "reduce_scatter";
    case Fabric::Call::kAllGather:
      return "all_gather";
    case Fabric::Call::kAllToAll:
      return "all_to_all";
    case Fabric::Call::kBarrier:
      return "barrier";
    case Fabric::Call::kSplit:
      return "split";
    case Fabric::Call::kSend:
      return "send";
    case Fabric::Call::kReceive:
      return "receive";
  }
  return "unknown call";
}

std::string rank_list(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + core::join(ranks);
}

std::string failure(Fabric::Call call, const std::string& what) {
  return core::concat("[", to_string(call), "] ", what,
                      "; this communicator can no longer be used");
}

std::string late(const Fabric::Operation& operation, const std::vector<int>& ranks,
                 const std::string& note) {
  return failure(operation.call, core::concat("deadline of ", operation.deadline.count(),
                                              " ms passed; waiting for ", rank_list(ranks), note));
}

std::string already_failed(Fabric::Call call, const std::string& cause) {
  return core::concat(
      "[", to_string(call),
      "] this communicator can no longer be used, because of an earlier failure: ", cause);
}

}  // namespace scalecom::comm
