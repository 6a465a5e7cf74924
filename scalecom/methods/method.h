#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/aligned_array.h"
#include "scalecom/core/buffer.h"
#include "scalecom/core/stream.h"
#include "scalecom/layout/rates.h"
#include "scalecom/layout/selection.h"
#include "scalecom/methods/learner.h"
#include "scalecom/methods/loss_scale.h"

namespace scalecom::methods {

/// A tensor's error feedback, by the tensor's name.
struct NamedMemory {
  std::string name;
  std::span<const float> values;
};
using Memories = std::map<std::string, core::AlignedArray<float>>;

/// The most steps that a method is restored to: whoever counts on, or multiplies a step by a number
/// of ranks, is far from the end of 64 bits, and Python and JSON have the number exactly.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;

/// What a rank sent and received where ranks are divided into groups, by level.
struct LevelTraffic {
  comm::Counters inside;
  comm::Counters between;
};

/// How ranks that all send the same entries come to them: whoever names some takes what `selection`
/// asks for of its own u = gain * (gradient + decay * memory), and the mean of u is what is sent.
struct Choice {
  layout::Selection selection;
  double decay = 1;
  double gain = 1;
};

/// A compressor: takes the mean of a gradient over ranks. Every rank has its own, made from the
/// same string, and brings the same buckets in the same order.
///
/// A step is one round over the model's tensors, in any number of buckets: it ends when a tensor
/// comes again. Buckets may change between steps; what a method remembers belongs to tensors.
///
/// A training loop needs start() or reduce(), rate_policy() for its layouts, and undo() where it
/// drops steps; what else there is stands below, by whom it is for.
///
/// One thread at a time calls a method. What was started on a worker stream is waited for before
/// anything but start() is called. On a GPU all its reductions go on one stream, or on streams that
/// the caller has put in order: scratch is shared among buckets.
class Method {
 public:
  virtual ~Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;

  // For a training loop.

  /// In: this rank's gradient. Out, in the same buffer: the mean over ranks, the same bits at every
  /// rank; all NaN where some rank's gradient, or the mean, is not finite. A finite mean that is
  /// too large for an fp16 gradient comes out infinite in that entry alone, and counts as sent. The
  /// buffer, the layout and the communicator stay alive until the work is done. A gradient on a GPU
  /// comes with a stream of that GPU, and the work takes its place in it: the host waits for
  /// nothing, but for the first step of a layout and where an option (check, nonfinite=error) has
  /// it look.
  ///
  /// Before the first reduction, and whenever a layout or an option is new, the ranks compare what
  /// they are about to do and make room for it; where they differ, or one has no room, every rank
  /// throws the same error and nothing has changed. (On a worker stream the step counts all the
  /// same, and a new method is needed.) Room for what dgc, gtopk and adacomp send is made later: a
  /// rank without it fails alone, and the others at their deadline.
  core::Work start(const core::Buffer& grad, const layout::Layout& layout,
                   comm::Communicator& communicator, const core::Stream& stream = {});
  void reduce(const core::Buffer& grad, const layout::Layout& layout,
              comm::Communicator& communicator, const core::Stream& stream = {}) {
    start(grad, layout, communicator, stream).wait();
  }

  /// How this method's layouts are made: layout::make_layout(model, method->rate_policy()).
  virtual layout::RatePolicy rate_policy() const { return {}; }

  /// Takes the last step back, over all its buckets, as if nothing had been sent: for a step whose
  /// result is not used. Until the next step begins; a second call changes nothing.
  virtual void undo() {}

  /// Other options from now on, between two steps: "beta=0.3,decay=0.99". The string is read like
  /// that of make(), without a name, and changes all or nothing. The last step can no longer be
  /// taken back. Every rank does the same.
  void configure(const std::string& settings);

  /// Whether the mean has momentum in it already, so that an optimizer is to add none.
  virtual bool brings_momentum() const { return false; }

  /// The name and every option: make(spec()) is this method again.
  std::string spec() const { return spec_text(); }

  /// Steps begun so far, and the one under way: steps() - 1.
  std::int64_t steps() const { return count_.steps; }

  /// Whether a bucket of this layout would begin a new step.
  bool begins_step(const layout::Layout& layout) const;

  // Where a loss scaler changes the gradients' unit.

  /// Before a step begins: the scale of its gradients, as a loss scaler keeps it on the stream's
  /// device, read in its place on the stream. Where it has changed since the step before, all that
  /// is remembered follows; where it has become smaller, the scaler skipped that step, which is
  /// taken back first.
  void follow_scale(const float* scale, const core::Stream& stream = {});
  /// The same between two steps, for who looks at the memories then, saves them or changes options.
  /// The host waits for a GPU.
  void settle_scale(const float* scale, const core::Stream& stream = {});

  /// All that is remembered times `factor`, between two steps: for gradients that come in other
  /// units from now on, as after a loss scaler has changed its scale. The last step can no longer
  /// be taken back.
  virtual void rescale(float /*factor*/) {}

  // In CUDA graphs.

  /// A stream may be captured into a CUDA graph while steps are started on it, once each layout has
  /// had a step of its own, and one after the warm-up; a captured step counts at once, and as one
  /// of its turn. With leaders=cyclic n steps in a row make n graphs, to be replayed in that order;
  /// with sharded leaders and for select=random one serves for all. Options that have the host look
  /// at a step (check, nonfinite=error) are refused. A graph holds arrays of this method:
  /// configure(), restore() and a layout that is new are the end of those captured before.
  ///
  /// Before the next step that is not a replay, and before saving: how many steps are done.
  void replayed(std::int64_t steps);

  // For saving and loading: state/method_state.h does both.

  /// What it remembers, for saving; and back again, replacing everything. The next step is `steps`,
  /// and the scale of its gradients, if they have one, that of the memories.
  virtual std::vector<NamedMemory> memories() const { return {}; }
  virtual void restore(std::int64_t steps, Memories memories);

  /// The learner that this rank belongs to. Every rank calls it.
  virtual Learner learner(comm::Communicator& communicator) const {
    return {communicator.rank(), communicator.size()};
  }

  // What it sends: for plans, counts and tests.

  /// What a rank sends and receives for one bucket in step `step` (the first is 0), to the byte,
  /// once the ranks have agreed on the layout. Where that depends on the data, it is what was
  /// packed for the last step, and what the options aim at for any other.
  virtual comm::Counters cost(const layout::Layout& layout, int size, int rank,
                              std::int64_t step) const = 0;

  /// The same by level, where the method divides the ranks into groups; else all of it is between.
  virtual LevelTraffic level_cost(const layout::Layout& layout, int size, int rank,
                                  std::int64_t step) const {
    return {{}, cost(layout, size, rank, step)};
  }

  /// Where the method divides the ranks into groups (groups=), the traffic of this rank, which is
  /// then not the communicator's.
  virtual LevelTraffic level_traffic() const { return {}; }

  /// The choice of step `step` (the first is 0); nothing where ranks do not all send the same
  /// entries, or send all of them.
  virtual std::optional<Choice> choice(std::int64_t /*step*/) const { return std::nullopt; }

  // For a method that this one is a part of, as with groups=, and which may bring it parts of
  // tensors.

  /// Whether tensors may be divided among ranks, each part being a tensor of its own to the method.
  virtual bool divides() const { return false; }

  /// Elements of a slice that stay together where its tensor is divided among ranks.
  virtual std::int64_t granule(const layout::Slice& /*slice*/) const { return 1; }

  /// Forgets what was restored of a tensor that is another rank's to remember.
  virtual void forget(const std::string& /*tensor*/) {}

  /// Before a bucket of fp32 is brought, by who has worked on it already: where *mark, on the
  /// bucket's device, is not 0, it comes out NaN at every rank, as if a number in it were not
  /// finite. No number in it is lost for that.
  virtual void spoil_where(const float* mark, const core::Buffer& grad, const core::Stream& stream);

  /// Whether an option (check, nonfinite=error) may make a reduction a CheckError.
  virtual bool may_refuse() const { return false; }

 protected:
  Method() = default;

  /// One bucket of step `step`, on the stream's thread; begin_step comes before a step's first.
  virtual void reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                             comm::Communicator& communicator, std::int64_t step,
                             const core::Stream& stream) = 0;
  virtual void begin_step(std::int64_t /*step*/) {}
  /// Before a layout's first bucket, at every rank: what the ranks have to settle among them. May
  /// throw, at all ranks alike, and then has changed nothing.
  virtual void meet(comm::Communicator& /*communicator*/) {}
  /// A layout's first bucket, of which nothing has been reduced yet.
  struct FirstBucket {
    const layout::Layout& layout;
    core::DType dtype;  ///< of the gradient
    int rank;
    int ranks;
    std::int64_t step;
    const core::Stream& stream;
  };
  /// Makes room for what it needs on the stream's device, after a warm-up too. May throw; then the
  /// way_back() from before is taken.
  virtual void prepare_bucket(const FirstBucket& /*first*/) {}
  /// What makes the method again what it is now, but for numbers in arrays: for a step that is
  /// refused before its first bucket is reduced.
  virtual std::function<void()> way_back() {
    return [] {};
  }
  /// UsageError where a stream is being captured and the bucket, last used in step `last`, was
  /// never used or is not there (-1): right after a warm-up, or where its layout was not brought
  /// lately.
  static void check_first(std::int64_t last, const core::Stream& stream);
  virtual void after_replays(std::int64_t /*steps*/) {}
  /// What follow_scale() found. Here the host waits for it; a method may do without.
  virtual void apply_scale(const LossScale& scale, const core::Stream& stream);
  /// The same of a method that this one is made of.
  static void prepare_bucket_of(Method& method, const FirstBucket& first) {
    method.prepare_bucket(first);
  }
  static std::function<void()> way_back_of(Method& method) {
    return [&method, back = method.way_back(), count = method.count_] {
      back();
      method.count_ = count;
    };
  }
  /// Its next bucket begins step `step`, whatever it was brought before.
  static void set_step_of(Method& method, std::int64_t step) { method.count_ = {step, false, {}}; }
  static void apply_scale_of(Method& method, const LossScale& scale, const core::Stream& stream) {
    method.apply_scale(scale, stream);
  }
  virtual std::string spec_text() const = 0;
  virtual void apply(const std::string& settings) = 0;
  /// Throws UsageError, changing nothing, where the memories cannot be its own.
  virtual void replace_memories(Memories memories);

 private:
  bool opens_step(const layout::Layout& layout);

  struct Count {
    std::int64_t steps = 0;
    bool step_open = false;      // whether one has begun since the start or a restore
    std::set<std::string> seen;  // tensors that had their turn in this step
  };

  void begin(const FirstBucket& bucket, comm::Communicator& communicator, bool opens,
             const std::optional<Count>& before);
  void agree(const FirstBucket& first, comm::Communicator& communicator);

  static std::uint64_t agreement(const layout::Layout& layout,
                                 const comm::Communicator& communicator, core::Device device);
  void compare(const layout::Layout& layout, comm::Communicator& communicator, std::int64_t step);

  Count count_;
  LossScale loss_scale_;
  // Layouts that all ranks are known to share, and have room for on the host or on a GPU.
  std::set<std::uint64_t> agreed_;
};

/// The method that `spec` describes: "dense", "half,values=bf16", "scalecom,rate=100,beta=0.1".
/// UsageError for an unknown name, key or value, with what is allowed.
std::unique_ptr<Method> make(const std::string& spec);

/// The groups= of a spec, or nothing, and the spec without: how the ranks are divided, not what a
/// learner does.
std::optional<std::string> groups_of(const std::string& spec);
std::string without_groups(const std::string& spec);

/// The names that make() knows, and what each understands.
std::vector<std::string> names();
std::string describe(const std::string& name);

}  // namespace scalecom::methods
