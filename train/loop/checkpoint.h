#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "scalecom/layout/layout.h"
#include "scalecom/methods/method.h"
#include "train/loop/replica.h"
#include "train/runs/tally.h"

namespace train::loop {

/// Where a run stands, besides its model and memories.
struct Standing {
  std::int64_t step = 0;     ///< steps done
  std::int64_t samples = 0;  ///< that they have seen, all learners together
  double seconds = 0;        ///< that they took
  double loss = 0;           ///< summed over `losses` steps since the last line of metrics
  std::int64_t losses = 0;
  std::vector<runs::Tally> tallies;  ///< by learner
};

/// A checkpoint is a folder of plain files: standing.json, model.safetensors (weights/NAME,
/// batch norm's figures/NAME, and momentum/NAME or whatever else the optimizer keeps) and
/// memories/, which scalecom/state writes. One learner writes the first two, each its own memory.
/// The stream is of the device that the model is on. Failures of the system are core::IoError.
void write_standing(const std::filesystem::path& folder, const Standing& standing);
void write_model(const std::filesystem::path& folder, Replica& replica, std::int64_t step,
                 const scalecom::core::Stream& stream = {});
void write_memory(const std::filesystem::path& folder, int learner, int learners,
                  const scalecom::methods::Method& method,
                  const scalecom::methods::Learner& holder);

/// core::UsageError, naming the file, where one is missing, damaged or not of this run. The tallies
/// are those of the learners that wrote it, and a memory is divided anew where they were another
/// number; `batch` is a learner's.
Standing read_standing(const std::filesystem::path& folder, std::int64_t batch);
/// Returns the step that it is of; -1 where it does not say.
std::int64_t read_model(const std::filesystem::path& folder, Replica& replica,
                        const scalecom::core::Stream& stream = {});
void read_memory(const std::filesystem::path& folder, scalecom::methods::Method& method,
                 const scalecom::methods::Learner& holder);

}  // namespace train::loop
