#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/stream.h"
#include "train/loop/processes.h"

namespace cli {

/// The processes as ranks whose arrays lie on a device: on "cpu" as they are; on "cuda" a GPU each,
/// by the process's place on its host, with NCCL between them; on "cuda:1" that GPU.
class DeviceRanks {
 public:
  /// Every process makes one. UsageError where there is no such device.
  DeviceRanks(train::loop::Processes& processes, const std::string& device,
              std::chrono::milliseconds deadline);

  scalecom::comm::Communicator& ranks() { return *ranks_; }
  const scalecom::core::Stream& stream() const { return stream_; }

 private:
  scalecom::core::Stream stream_;
  std::unique_ptr<scalecom::comm::Communicator> nccl_;
  scalecom::comm::Communicator* ranks_;
};

}  // namespace cli
