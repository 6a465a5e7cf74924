#include "scalecom/methods/method.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "scalecom/comm/together.h"
#include "scalecom/core/arithmetic.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/pieces.h"

namespace scalecom::methods {
namespace {

// That the gradient lies where its stream works, and really there.
void check_device(const core::Buffer& grad, const core::Stream& stream) {
  if (grad.device != stream.device()) {
    throw core::UsageError(core::concat("[reduce] the gradient is on ",
                                        core::to_string(grad.device), " and its stream on ",
                                        core::to_string(stream.device())));
  }
  if (!grad.device.is_cuda() || grad.elements == 0) return;
  const core::Device real = core::cuda::device_of(grad.data);
  if (real != grad.device) {
    throw core::UsageError(core::concat("[reduce] the gradient is said to be on ",
                                        core::to_string(grad.device), " and lies on ",
                                        core::to_string(real)));
  }
}

void check(const core::Buffer& grad, const layout::Layout& layout) {
  if (grad.elements != layout.elements()) {
    throw core::UsageError(core::concat("[reduce] the gradient has ", grad.elements,
                                        " elements and its layout ", layout.elements()));
  }
  if (grad.data == nullptr && grad.elements > 0) {
    throw core::UsageError("[reduce] the gradient is a null pointer");
  }
  if (reinterpret_cast<std::uintptr_t>(grad.data) %
          static_cast<std::uintptr_t>(core::size_of(grad.dtype)) !=
      0) {
    throw core::UsageError(core::concat("[reduce] the gradient is not aligned to its type, ",
                                        core::to_string(grad.dtype)));
  }
}

// What every rank says of itself where the ranks differ; of one size, so that one call gathers it.
using Statement = std::array<char, 512>;

Statement statement(const std::string& spec, const layout::Layout& layout, std::int64_t step) {
  const std::string text = core::concat(
      "'", spec, "' at step ", step, " with a bucket of ", layout.elements(), " elements in ",
      layout.slices().size(), " tensors", layout.slices().empty() ? "" : " from ",
      layout.slices().empty() ? "" : layout.slices().front().name);
  Statement fixed{};
  std::memcpy(fixed.data(), text.data(), std::min(text.size(), fixed.size() - 1));
  return fixed;
}

// "rank 0: ...; rank 2: ...": the first rank of each kind.
std::string differences(const std::vector<std::array<std::uint64_t, 3>>& digests,
                        const std::vector<Statement>& statements) {
  std::vector<std::string> lines;
  for (std::size_t r = 0; r < digests.size(); ++r) {
    if (std::find(digests.begin(), digests.begin() + static_cast<std::ptrdiff_t>(r), digests[r]) !=
        digests.begin() + static_cast<std::ptrdiff_t>(r)) {
      continue;
    }
    // A peer's text need not end.
    const std::string_view text(statements[r].data(),
                                strnlen(statements[r].data(), statements[r].size()));
    lines.push_back(core::concat("rank ", r, " has ", text));
  }
  return core::join(lines, "; ");
}

}  // namespace

core::Work Method::start(const core::Buffer& grad, const layout::Layout& layout,
                         comm::Communicator& communicator, const core::Stream& stream) {
  check(grad, layout);
  check_device(grad, stream);
  // A worker's task runs when others may have been started.
  std::optional<Count> before;
  if (!stream.is_worker() && !agreed_.contains(agreement(layout, communicator, stream.device()))) {
    before = count_;
  }
  const bool opens = opens_step(layout);
  const std::int64_t step = count_.steps - 1;
  // A worker's task must not keep its own stream alive.
  const core::Stream on = stream.device().is_cuda() ? stream : core::Stream();
  return stream.run(
      [this, grad, &layout, &communicator, opens, step, on, before = std::move(before)] {
        const core::DefaultArithmetic arithmetic;
        begin({layout, grad.dtype, communicator.rank(), communicator.size(), step, on},
              communicator, opens, before);
        reduce_bucket(grad, layout, communicator, step, on);
      });
}

// Only the first reduction of a layout can fail with nothing sent yet, at every rank alike; then
// the method is as it was. Past the loss of a peer no step is counted twice.
void Method::begin(const FirstBucket& bucket, comm::Communicator& communicator, bool opens,
                   const std::optional<Count>& before) {
  if (agreed_.contains(agreement(bucket.layout, communicator, bucket.stream.device()))) {
    if (opens) begin_step(bucket.step);
    return;
  }
  const std::function<void()> back = way_back();
  try {
    if (opens) begin_step(bucket.step);
    agree(bucket, communicator);
  } catch (const core::PeerError&) {
    back();
    throw;
  } catch (...) {
    back();
    if (before) count_ = *before;
    throw;
  }
}

// A step ends when a tensor comes again. That holds whatever the buckets are, and whether or not
// some steps bring fewer of them.
bool Method::begins_step(const layout::Layout& layout) const {
  const bool again =
      std::any_of(layout.slices().begin(), layout.slices().end(),
                  [this](const layout::Slice& s) { return count_.seen.contains(s.name); });
  return again || !count_.step_open;
}

bool Method::opens_step(const layout::Layout& layout) {
  const bool opens = begins_step(layout);
  if (opens) {
    count_.seen.clear();
    ++count_.steps;
    count_.step_open = true;
  }
  for (const layout::Slice& slice : layout.slices()) count_.seen.insert(slice.name);
  return opens;
}

std::uint64_t Method::agreement(const layout::Layout& layout,
                                const comm::Communicator& communicator, core::Device device) {
  const std::uint64_t world =
      core::combine(static_cast<std::uint64_t>(communicator.size()), device.is_cuda() ? 1 : 0);
  return core::combine(layout.fingerprint(), world);
}

void Method::agree(const FirstBucket& first, comm::Communicator& communicator) {
  if (core::cuda::is_capturing(first.stream)) {
    throw core::UsageError(
        "[reduce] this layout was not reduced before: take one step before capturing the next");
  }
  if (communicator.size() > 1) compare(first.layout, communicator, first.step);
  meet(communicator);
  // What one rank has no room for, none begins.
  comm::together(communicator, [&] { prepare_bucket(first); });
  agreed_.insert(agreement(first.layout, communicator, first.stream.device()));
}

// What a bucket keeps on the device is filled in its first step, by the host. To be called before
// anything moves: what a capturing stream is told to copy is not copied.
void Method::check_first(std::int64_t last, const core::Stream& stream) {
  if (last >= 0 || !core::cuda::is_capturing(stream)) return;
  throw core::UsageError(
      "[reduce] this layout had no step of this kind lately, dense in a warm-up or compressed: "
      "take "
      "one before capturing the next");
}

void Method::compare(const layout::Layout& layout, comm::Communicator& communicator,
                     std::int64_t step) {
  const std::string text = spec();
  const auto digests = comm::gather<std::array<std::uint64_t, 3>>(
      communicator, {core::hash(text), layout.fingerprint(), static_cast<std::uint64_t>(step)});
  const bool same = std::all_of(digests.begin(), digests.end(),
                                [&](const auto& digest) { return digest == digests.front(); });
  if (!same) {
    const auto statements = comm::gather(communicator, statement(text, layout, step));
    throw core::UsageError(core::concat(
        "[reduce] the ranks are not about to do the same: ", differences(digests, statements),
        "; give every rank the same options and tensors"));
  }
}

// Without a memory nothing of a bucket that comes out NaN is kept, so that any number may go.
void Method::spoil_where(const float* mark, const core::Buffer& grad, const core::Stream& stream) {
  kernels::spoil(mark, static_cast<float*>(grad.data), stream);
}

void Method::follow_scale(const float* scale, const core::Stream& stream) {
  loss_scale_.look(scale, stream);
  apply_scale(loss_scale_, stream);
}

// What the methods do for themselves leaves an undo() that would bring back numbers of the former
// scale, which a step that begins right afterwards ends. Here none does.
void Method::settle_scale(const float* scale, const core::Stream& stream) {
  loss_scale_.look(scale, stream);
  Method::apply_scale(loss_scale_, stream);
}

void Method::apply_scale(const LossScale& scale, const core::Stream& /*stream*/) {
  const LossScale::Change change = scale.read();
  if (change.skipped) undo();
  if (change.factor != 1.0F) rescale(change.factor);
}

void Method::configure(const std::string& settings) {
  apply(settings);
  agreed_.clear();
}

void Method::replayed(std::int64_t steps) {
  if (steps < 1)
    throw core::UsageError(core::concat("[replayed] ", steps, " steps; give 1 or more"));
  count_.steps = steps;
  after_replays(steps);
}

void Method::restore(std::int64_t steps, Memories memories) {
  if (steps < 0 || steps > kMostSteps) {
    throw core::UsageError(
        core::concat("[restore] step ", steps, "; steps are from 0 to ", kMostSteps));
  }
  replace_memories(std::move(memories));
  count_ = {steps, false, {}};
  loss_scale_ = {};
  agreed_.clear();
}

void Method::replace_memories(Memories memories) {
  if (!memories.empty()) {
    throw core::UsageError(core::concat("[restore] '", spec(), "' keeps no memory, but one of '",
                                        memories.begin()->first, "' was given"));
  }
}

}  // namespace scalecom::methods
