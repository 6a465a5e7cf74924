#include "scalecom/methods/adacomp/adacomp.h"

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/elementwise.h"
#include "scalecom/methods/adacomp/bucket.h"
#include "scalecom/methods/buckets.h"
#include "scalecom/methods/nonfinite.h"
#include "scalecom/wire/ternary.h"

namespace scalecom::methods::adacomp {
namespace {

struct Options {
  BinSizes bins;
  OnNonFinite nonfinite;

  core::OptionTable table() {
    core::OptionTable table("adacomp");
    table.integer("bin", &bins.other, 1, wire::kLargestBin);
    table.integer("conv_bin", &bins.convolution, 1, wire::kLargestBin);
    nonfinite.declare(table);
    return table;
  }
};

/// What a rank says before its message.
struct Announcement {
  std::int64_t bytes = 0;
  std::int64_t finite = 1;
};

// Before room is made for what was announced.
void check(std::span<const Announcement> announced, const Bucket& bucket) {
  const std::int64_t least = bucket.least_bytes();
  const std::int64_t most = bucket.most_bytes();
  for (std::size_t rank = 0; rank < announced.size(); ++rank) {
    const std::int64_t bytes = announced[rank].bytes;
    if (bytes >= least && bytes <= most) continue;
    throw core::PeerError(core::concat("[adacomp] rank ", rank, " announced a message of ", bytes,
                                       " bytes; this layout's have ", least, " to ", most));
  }
}

class AdaComp final : public Method {
 public:
  explicit AdaComp(const core::OptionString& options) { options_.table().read(options.settings); }

  /// Of the last step with this layout, which every rank knows once it is done; before the first,
  /// the least that a step can take.
  comm::Counters cost(const layout::Layout& layout, int size, int rank,
                      std::int64_t step) const override;
  bool may_refuse() const override { return options_.nonfinite.is_error(); }
  void undo() override;
  void rescale(float factor) override;
  std::vector<NamedMemory> memories() const override { return memories_.list(); }

 protected:
  void begin_step(std::int64_t step) override;
  void prepare_bucket(const FirstBucket& first) override;
  void reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                     comm::Communicator& communicator, std::int64_t step,
                     const core::Stream& stream) override;
  std::function<void()> way_back() override {
    return [this, memories = memories_, buckets = buckets_] {
      memories_ = memories;
      buckets_ = buckets;
    };
  }
  std::string spec_text() const override;
  void apply(const std::string& settings) override;
  void replace_memories(Memories memories) override;

 private:
  Bucket& bucket_of(const layout::Layout& layout, std::int64_t step);
  bool exchange(Bucket& bucket, const core::Buffer& grad, comm::Communicator& communicator);
  bool reduce_dense(const Bucket& bucket, const core::Buffer& grad,
                    comm::Communicator& communicator);

  Options options_;
  MemoryStore memories_;
  Buckets<Bucket> buckets_;
  std::vector<float> dense_;
};

Bucket& AdaComp::bucket_of(const layout::Layout& layout, std::int64_t step) {
  return buckets_.get(layout, false, step,
                      [&] { return std::make_shared<Bucket>(layout, options_.bins, &memories_); });
}

void AdaComp::begin_step(std::int64_t step) {
  buckets_.begin_step(step);
}

void AdaComp::prepare_bucket(const FirstBucket& first) {
  require_host("adacomp", first.stream.device());
  bucket_of(first.layout, first.step);
}

void AdaComp::reduce_bucket(const core::Buffer& grad, const layout::Layout& layout,
                            comm::Communicator& communicator, std::int64_t step,
                            const core::Stream& /*stream*/) {
  Bucket& bucket = bucket_of(layout, step);
  bucket.step = step;
  if (exchange(bucket, grad, communicator)) return;
  bucket.put_back();
  spoil(grad);
  options_.nonfinite.refuse("adacomp", step);
}

// False where something is not finite, at every rank alike.
bool AdaComp::exchange(Bucket& bucket, const core::Buffer& grad, comm::Communicator& communicator) {
  const float factor = 1.0F / static_cast<float>(communicator.size());
  dense_.resize(static_cast<std::size_t>(bucket.dense().elements()));
  const bool dense_finite = bucket.dense().load(grad, factor, dense_.data());
  const bool finite = bucket.select(grad) && dense_finite;
  const std::vector<std::byte> mine = bucket.message();
  const auto announced = comm::gather<Announcement>(
      communicator, {static_cast<std::int64_t>(mine.size()), finite ? 1 : 0});
  check(announced, bucket);
  bucket.message_bytes.clear();
  std::int64_t total = 0;
  bool all_finite = true;
  for (const Announcement& one : announced) {
    bucket.message_bytes.push_back(one.bytes);
    total += one.bytes;
    all_finite = all_finite && one.finite != 0;
  }
  if (!all_finite) return false;

  std::vector<std::byte> all(static_cast<std::size_t>(total));
  communicator.all_gather(mine, all, bucket.message_bytes);
  std::vector<std::span<const std::byte>> messages;
  std::span<const std::byte> rest(all);
  for (const std::int64_t bytes : bucket.message_bytes) {
    messages.push_back(rest.first(static_cast<std::size_t>(bytes)));
    rest = rest.subspan(static_cast<std::size_t>(bytes));
  }
  const bool sums_finite = bucket.add_up(messages, factor, grad);
  return reduce_dense(bucket, grad, communicator) && sums_finite;
}

bool AdaComp::reduce_dense(const Bucket& bucket, const core::Buffer& grad,
                           comm::Communicator& communicator) {
  communicator.all_reduce(dense_);
  kernels::elementwise::Flag flag = 0;
  kernels::elementwise::check_finite(dense_.data(), bucket.dense().elements(), &flag, {});
  bucket.dense().store(dense_.data(), grad);
  return flag == 0;
}

void AdaComp::undo() {
  buckets_.for_each([this](Bucket& bucket) {
    if (bucket.step == steps() - 1) bucket.put_back();
  });
}

void AdaComp::rescale(float factor) {
  memories_.scale(factor);
  buckets_.for_each([](Bucket& bucket) { bucket.forget_sent(); });
}

std::string AdaComp::spec_text() const {
  Options copy = options_;
  return "adacomp," + copy.table().text();
}

void AdaComp::apply(const std::string& settings) {
  options_.table().read(core::OptionString::parse("adacomp," + settings).settings);
  buckets_.clear();
}

void AdaComp::replace_memories(Memories memories) {
  memories_.replace(std::move(memories));
  buckets_.clear();
}

comm::Counters AdaComp::cost(const layout::Layout& layout, int size, int rank,
                             std::int64_t /*step*/) const {
  const Bucket fresh(layout, options_.bins, nullptr);
  const Bucket* const found = buckets_.find(layout);
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(size), fresh.least_bytes());
  if (found != nullptr && found->message_bytes.size() == bytes.size()) {
    bytes = found->message_bytes;
  }
  std::int64_t total = 0;
  for (const std::int64_t one : bytes) total += one;
  constexpr auto kWord = static_cast<std::int64_t>(sizeof(Announcement));
  comm::Counters cost;
  cost[comm::Call::kAllGather] =
      comm::all_gather_traffic(kWord, kWord * size, size) +
      comm::all_gather_traffic(bytes[static_cast<std::size_t>(rank)], total, size);
  cost[comm::Call::kAllReduce] = comm::all_reduce_traffic(fresh.dense().elements(), size, rank);
  return cost;
}

}  // namespace

std::unique_ptr<Method> make(const core::OptionString& options) {
  return std::make_unique<AdaComp>(options);
}

std::string allowed_options() {
  Options defaults;
  return defaults.table().allowed();
}

}  // namespace scalecom::methods::adacomp
