#include "scalecom/methods/groups/grouped.h"

#include <charconv>
#include <cmath>
#include <exception>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scalecom/comm/together.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
#include "scalecom/core/options.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/elementwise.h"
#include "scalecom/methods/buckets.h"
#include "scalecom/methods/finite_flag.h"
#include "scalecom/methods/groups/division.h"
#include "scalecom/methods/groups/places.h"

namespace scalecom::methods::groups {
namespace {

namespace elementwise = kernels::elementwise;

void check_divides(const Method& method) {
  if (method.divides()) return;
  throw core::UsageError(core::concat("[groups] '", method.spec(),
                                      "' selects over the whole bucket, which groups divide; "
                                      "allowed: select=chunk, chunk:C or random"));
}

// One number of an array on the stream's device. The host waits for a GPU.
float value_of(const float* number, const core::Stream& stream) {
  if (!stream.device().is_cuda()) return *number;
  float here = 0;
  core::cuda::copy(&here, number, sizeof here, stream);
  core::cuda::synchronize(stream);
  return here;
}

void set_value(float* number, float value, const core::Stream& stream) {
  if (!stream.device().is_cuda()) {
    *number = value;
    return;
  }
  core::cuda::copy(number, &value, sizeof value, stream);
  core::cuda::synchronize(stream);
}

class Grouped final : public Method {
 public:
  Grouped(std::unique_ptr<Method> inner, const Grouping& grouping)
      : inner_(std::move(inner)), grouping_(grouping) {}

  layout::RatePolicy rate_policy() const override { return inner_->rate_policy(); }
  std::int64_t granule(const layout::Slice& slice) const override { return inner_->granule(slice); }
  bool may_refuse() const override { return inner_->may_refuse(); }
  comm::Counters cost(const layout::Layout& layout, int size, int rank,
                      std::int64_t step) const override;
  LevelTraffic level_cost(const layout::Layout& layout, int size, int rank,
                          std::int64_t step) const override;
  LevelTraffic level_traffic() const override;
  std::optional<Choice> choice(std::int64_t step) const override { return inner_->choice(step); }
  void undo() override {
    if (shared_last_step()) inner_->undo();
  }
  void rescale(float factor) override { inner_->rescale(factor); }
  std::vector<NamedMemory> memories() const override { return inner_->memories(); }
  void restore(std::int64_t steps, Memories memories) override {
    inner_->restore(steps, std::move(memories));
    Method::restore(steps, {});
    granules_.clear();
    plans_.clear();
    shared_ = -1;
  }
  Learner learner(comm::Communicator& communicator) const override;

 protected:
  void meet(comm::Communicator& communicator) override;
  void prepare_bucket(const FirstBucket& first) override;
  void reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                     comm::Communicator& communicator, std::int64_t step,
                     const core::Stream& stream) override;
  // The inner method counts with this one, whether or not this member has a share of every step:
  // its warm-up, and what undo() takes back, are those of the other members.
  void begin_step(std::int64_t step) override {
    plans_.begin_step(step);
    set_step_of(*inner_, step);
  }
  std::function<void()> way_back() override {
    return [this, inner = way_back_of(*inner_), met = met_, inside = inside_, between = between_,
            granules = granules_, plans = plans_] {
      inner();
      met_ = met;
      inside_ = inside;
      between_ = between;
      granules_ = granules;
      plans_ = plans;
    };
  }
  void after_replays(std::int64_t steps) override {
    inner_->replayed(steps);
    plans_.replayed(steps);
    if (shared_ >= 0) shared_ = steps - 1;
  }
  void apply_scale(const LossScale& scale, const core::Stream& stream) override {
    if (shared_last_step()) {
      apply_scale_of(*inner_, scale, stream);
    } else {
      inner_->rescale(scale.read().factor);
    }
  }
  std::string spec_text() const override {
    return core::concat(inner_->spec(), ",groups=", grouping_.text());
  }
  void apply(const std::string& settings) override;

 private:
  struct Plan {
    Division division;
    kernels::Pieces pieces;
    core::Array<float> travelling;
  };

  Places places_of(comm::Communicator& communicator) const {
    return grouping_.size == 0 ? by_host(communicator)
                               : by_number(communicator.size(), grouping_.size);
  }
  Division divide(const layout::Layout& layout, int members) const {
    check_divides(*inner_);
    return Division(layout, members, [this](const layout::Slice& slice) {
      const auto found = granules_.find(slice.name);
      return found != granules_.end() ? found->second : inner_->granule(slice);
    });
  }
  Plan& plan_of(const layout::Layout& layout, std::int64_t step, const core::Stream& stream);
  void forget_others(const layout::Layout& all, const layout::Layout& own);
  /// A step may bring tensors of which this member has no part; then the last of the inner method
  /// is another one.
  bool shared_last_step() const { return shared_ == steps() - 1; }
  std::exception_ptr reduce_share(const Division& division, std::span<float> own, std::int64_t step,
                                  const core::Stream& stream);
  void share_refusal(const Division& division, std::span<float> whole,
                     const std::exception_ptr& mine, const core::Stream& stream);

  std::unique_ptr<Method> inner_;
  Grouping grouping_;
  const comm::Communicator* met_ = nullptr;  // whose parts these are
  std::shared_ptr<comm::Communicator> inside_;
  std::shared_ptr<comm::Communicator> between_;
  // By which each tensor was first divided. Other rates do not change that, as parts of memories
  // would have to move.
  std::map<std::string, std::int64_t> granules_;
  Buckets<Plan> plans_;
  std::int64_t shared_ = -1;  // the last step in which this member had a share
  FiniteFlag flag_;
};

void Grouped::meet(comm::Communicator& communicator) {
  if (met_ == &communicator) return;
  const Places places = places_of(communicator);
  const auto rank = static_cast<std::size_t>(communicator.rank());
  // Numbers of groups and of shares, so that no two colours of the two divisions are the same.
  inside_ = communicator.split(places.group[rank], places.member[rank]);
  between_ = communicator.split(places.groups + places.member[rank], places.group[rank]);
  plans_.clear();
  met_ = &communicator;
}

Grouped::Plan& Grouped::plan_of(const layout::Layout& layout, std::int64_t step,
                                const core::Stream& stream) {
  return plans_.get(layout, false, step, [&] {
    for (const layout::Slice& slice : layout.slices()) {
      granules_.try_emplace(slice.name, inner_->granule(slice));
    }
    Division division = divide(layout, inside_->size());
    forget_others(layout, division.layout_of(inside_->rank()));
    kernels::Pieces pieces(division.pieces(), stream);
    core::Array<float> travelling(stream.device(), division.elements());
    return std::make_shared<Plan>(
        Plan{std::move(division), std::move(pieces), std::move(travelling)});
  });
}

// Whole tensors are restored at every member. Those of which this one has no part would stay as
// they are, and be saved again as what is still to be sent.
void Grouped::forget_others(const layout::Layout& all, const layout::Layout& own) {
  std::set<std::string> names;
  for (const layout::Slice& slice : own.slices()) names.insert(slice.name);
  for (const layout::Slice& slice : all.slices()) {
    if (!names.contains(slice.name)) inner_->forget(slice.name);
  }
}

void Grouped::prepare_bucket(const FirstBucket& first) {
  const Plan& plan = plan_of(first.layout, first.step, first.stream);
  // Here, where all ranks hear of a lack of room, and not when members wait for a share.
  const layout::Layout& share = plan.division.layout_of(inside_->rank());
  if (share.elements() == 0) return;
  prepare_bucket_of(*inner_, {share, core::DType::kFloat32, between_->rank(), between_->size(),
                              first.step, first.stream});
}

void Grouped::reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                            comm::Communicator& communicator, std::int64_t step,
                            const core::Stream& stream) {
  if (plans_.find(layout) == nullptr) check_first(-1, stream);
  meet(communicator);
  Plan& plan = plan_of(layout, step, stream);
  const Division& division = plan.division;
  const int member = inside_->rank();
  const auto whole = plan.travelling.span();
  const auto own = whole.subspan(static_cast<std::size_t>(member * division.slot()),
                                 static_cast<std::size_t>(division.slot()));

  // Whoever holds a share is told by its mark where any gradient of the group is not finite.
  flag_.clear(stream);
  plan.pieces.load(grad.data, grad.dtype, 1.0F / static_cast<float>(inside_->size()), whole.data(),
                   stream);
  elementwise::check_finite(whole.data(), division.elements(), flag_.data(), stream);
  kernels::mark(flag_.data(), whole.data() + division.mark_of(0), division.slot(),
                division.members(), stream);
  inside_->reduce_scatter(whole, stream);

  const std::exception_ptr refusal = reduce_share(division, own, step, stream);

  inside_->all_gather(std::as_bytes(own), std::as_writable_bytes(whole), stream);
  flag_.clear(stream);
  elementwise::check_finite(whole.data(), division.elements(), flag_.data(), stream);
  plan.pieces.store(whole.data(), grad.data, grad.dtype, flag_.data(), stream);
  if (inner_->may_refuse() && !flag_.is_clear()) share_refusal(division, whole, refusal, stream);
}

// This member's share, together with those who hold it in the other groups. Where they refuse it,
// as they all do then, its mark becomes NaN, for the members of the group who hold others or none.
std::exception_ptr Grouped::reduce_share(const Division& division, std::span<float> own,
                                         std::int64_t step, const core::Stream& stream) {
  const layout::Layout& share = division.layout_of(inside_->rank());
  if (share.elements() == 0) {
    // What the step brings about whoever has a share, as the end of a warm-up: members are saved as
    // one learner.
    prepare_bucket_of(
        *inner_, {share, core::DType::kFloat32, between_->rank(), between_->size(), step, stream});
    return nullptr;
  }
  const core::Buffer buffer{own.data(), share.elements(), core::DType::kFloat32, stream.device()};
  float* const mark = own.data() + division.slot() - 1;
  shared_ = step;
  try {
    inner_->spoil_where(mark, buffer, stream);
    inner_->reduce(buffer, share, *between_, stream);
  } catch (const core::CheckError&) {
    set_value(mark, std::numeric_limits<float>::quiet_NaN(), stream);
    return std::current_exception();
  }
  return nullptr;
}

// Where any share of the group was refused, every member throws the same.
void Grouped::share_refusal(const Division& division, std::span<float> whole,
                            const std::exception_ptr& mine, const core::Stream& stream) {
  bool refused = false;
  for (int member = 0; member < division.members(); ++member) {
    float* const mark = whole.data() + division.mark_of(member);
    if (!std::isnan(value_of(mark, stream))) continue;
    refused = true;
    set_value(mark, 0, stream);  // the next step looks for what is not finite here too
  }
  if (!refused) return;
  comm::together(*inside_, [&mine] {
    if (mine) std::rethrow_exception(mine);
  });
}

comm::Counters Grouped::cost(const layout::Layout& layout, int size, int rank,
                             std::int64_t step) const {
  const LevelTraffic levels = level_cost(layout, size, rank, step);
  comm::Counters cost = levels.between;
  return cost += levels.inside;
}

LevelTraffic Grouped::level_cost(const layout::Layout& layout, int size, int rank,
                                 std::int64_t step) const {
  if (grouping_.size == 0) {
    throw core::UsageError(
        "[groups] what groups=node costs depends on the hosts; ask with groups=N");
  }
  const Places places = by_number(size, grouping_.size);
  const int member = places.member[static_cast<std::size_t>(rank)];
  const Division division = divide(layout, places.members);
  LevelTraffic levels;
  levels.between = inner_->cost(division.layout_of(member), places.groups,
                                places.group[static_cast<std::size_t>(rank)], step);
  levels.inside[comm::Call::kReduceScatter] =
      comm::reduce_scatter_traffic(division.elements(), places.members, member);
  levels.inside[comm::Call::kAllGather] =
      comm::all_gather_traffic(4 * division.slot(), 4 * division.elements(), places.members);
  return levels;
}

LevelTraffic Grouped::level_traffic() const {
  if (met_ == nullptr) return {};
  return {inside_->counters(), between_->counters()};
}

Learner Grouped::learner(comm::Communicator& communicator) const {
  const Places places = places_of(communicator);
  return {places.group[static_cast<std::size_t>(communicator.rank())], places.groups};
}

void Grouped::apply(const std::string& settings) {
  for (const auto& [key, value] : core::OptionString::parse("groups," + settings).settings) {
    if (key == "groups") {
      throw core::UsageError(
          "[groups] a method keeps its groups: save its state, and load it into one that has "
          "others");
    }
  }
  // On another one first: what cannot be divided is to leave this one as it was.
  const std::unique_ptr<Method> trial = methods::make(inner_->spec());
  trial->configure(settings);
  check_divides(*trial);
  inner_->configure(settings);
  plans_.clear();
}

}  // namespace

Grouping Grouping::parse(const std::string& text) {
  if (text == "node") return {0};
  Grouping grouping;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, grouping.size);
  if (result.ec != std::errc{} || result.ptr != end || grouping.size < 1) {
    throw core::UsageError(core::concat("[groups] groups=", text,
                                        " is not allowed; allowed: node | a whole number from 1 "
                                        "on, the ranks of a group"));
  }
  return grouping;
}

std::string Grouping::text() const {
  return size == 0 ? "node" : std::to_string(size);
}

std::unique_ptr<Method> make(std::unique_ptr<Method> inner, const Grouping& grouping) {
  check_divides(*inner);
  return std::make_unique<Grouped>(std::move(inner), grouping);
}

}  // namespace scalecom::methods::groups
