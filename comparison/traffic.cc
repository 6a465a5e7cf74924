#include "comparison/traffic.h"

#include <vector>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/aligned_array.h"
#include "scalecom/layout/rates.h"
#include "scalecom/methods/method.h"
#include "train/runs/tally.h"

namespace comparison {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;
namespace methods = scalecom::methods;

train::runs::Tally tally_of(Probe& probe, const std::string& spec, comm::Communicator& world) {
  const auto method = methods::make(spec);
  method->restore(train::runs::warmup_of(method->spec()), {});
  const auto layout = scalecom::layout::make_layout(probe.tensors(), method->rate_policy());
  core::AlignedArray<float> gradient(probe.elements());
  train::runs::Tally tally;
  for (int step = 0; step <= kTrafficSteps; ++step) {
    probe.gradient(world.size(), world.rank(), step,
                   {gradient.data(), static_cast<std::size_t>(gradient.size())});
    const comm::Traffic before = world.counters().total();
    method->reduce(core::Buffer::of(gradient.data(), gradient.size()), layout, world);
    tally.add(world.counters().total() - before, step > 0);
  }
  return tally;
}

}  // namespace

Moved measure_traffic(Probe& probe, const std::string& spec, int ranks) {
  std::vector<train::runs::Tally> tallies(static_cast<std::size_t>(ranks));
  comm::inproc::run(ranks, [&](comm::Communicator& world) {
    tallies[static_cast<std::size_t>(world.rank())] = tally_of(probe, spec, world);
  });
  return {ranks, train::runs::bytes_per_rank_step(tallies).value(),
          train::runs::max_rank_bytes(tallies).value()};
}

}  // namespace comparison
