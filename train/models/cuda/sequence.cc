#include "train/models/cuda/sequence.h"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "scalecom/core/array.h"
#include "scalecom/core/cuda/runtime.h"
#include "train/models/cuda/batches.h"
#include "train/models/cuda/joined_size.h"
#include "train/models/cuda/torch_device.h"
#include "train/models/cuda/working_weights.h"
#include "train/models/sequence_pass.h"

namespace train::models::cuda {
namespace {

namespace core = scalecom::core;
using core::cuda::Event;

constexpr std::int64_t kMostSamples = 640;  // at once, where learners are joined

constexpr std::int64_t bytes(std::int64_t numbers) {
  return numbers * static_cast<std::int64_t>(sizeof(std::int32_t));
}

/// Numbers on their way to the device, through pinned memory, so that the host need not wait. A few
/// batches may be under way.
class Upload {
 public:
  explicit Upload(core::Device device) {
    for (Slot& slot : slots_) slot.sent.emplace(device);
  }

  /// In order on `stream`.
  void send(std::span<const std::int32_t> numbers, std::int32_t* d_to, const core::Stream& stream) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    Slot& slot = slots_[next_++ % slots_.size()];
    slot.sent->wait();
    if (slot.room < count) {
      slot.pinned = core::cuda::allocate_pinned(bytes(count));
      slot.room = count;
    }
    auto* const at = static_cast<std::int32_t*>(slot.pinned.get());
    std::copy(numbers.begin(), numbers.end(), at);
    core::cuda::copy(d_to, at, bytes(count), stream);
    slot.sent->record(stream);
  }

 private:
  struct Slot {
    std::shared_ptr<void> pinned;
    std::int64_t room = 0;
    std::optional<Event> sent;
  };

  std::array<Slot, 4> slots_;
  std::size_t next_ = 0;
};

/// Held by the one lane that computes by other means than a replay. All lanes' backward passes run
/// on autograd's one thread for the GPU, where CUDA's libraries keep one state: a lane that used it
/// while another captured would break the capture.
std::mutex& computing() {
  static std::mutex mutex;
  return mutex;
}

/// Forward and backward pass over rows of one width, captured.
struct Graph {
  at::Tensor given;   // the rows of all learners, and then the noise of each
  at::Tensor losses;  // of each
  std::vector<at::Tensor> gradient;
  std::vector<Transposition> gather;  // of each one's gradient, into one array
  at::cuda::CUDAGraph graph;
};

/// What batches go through, one after the other or those of several learners as one: a stream, and
/// the graphs that compute on it. Several lanes work at the same time, with the same weights.
class Lane {
 public:
  Lane(core::Device device, const SequenceModel& model, WorkingWeights& weights, at::Tensor table,
       std::int64_t learners, std::int64_t batch)
      : model_(model),
        table_(std::move(table)),
        learners_(learners),
        batch_(batch),
        native_(c10::cuda::getStreamFromPool(false, static_cast<c10::DeviceIndex>(device.index))),
        stream_(core::Stream::wrap(device, native_.stream())),
        received_(device),
        done_(device),
        upload_(device),
        parameters_(learners == 1 ? weights.leaves() : weights.leaves(learners)),
        pool_(at::cuda::graph_pool_handle()) {}
  ~Lane() {
    try {
      native_.synchronize();
    } catch (...) {  // whoever was using it has been told
    }
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// `stream` waits for all that was put here.
  void make_wait(const core::Stream& stream) const { done_.make_wait(stream); }

  std::int64_t learners() const { return learners_; }

  /// As many batches as learners, of rows of one width, once the weights are `updated`.
  void gradients(std::span<const SequenceBatch> batches, const Event& updated) {
    const std::lock_guard lock(mutex_);
    const c10::cuda::CUDAStreamGuard guard(native_);
    std::vector<std::int32_t> given;
    for (const SequenceBatch& batch : batches) {
      given.insert(given.end(), batch.rows.values.begin(), batch.rows.values.end());
      received_.record(batch.stream);
      received_.make_wait(stream_);
    }
    for (const SequenceBatch& batch : batches) given.push_back(batch.noise);
    updated.make_wait(stream_);
    Graph& graph = graph_for(batches.front().rows.width);
    upload_.send(given, graph.given.mutable_data_ptr<std::int32_t>(), stream_);
    graph.graph.replay();
    for (std::size_t i = 0; i < batches.size(); ++i) {
      graph.gather[i].run(batches[i].gradient.data(), stream_);
      core::cuda::copy(batches[i].loss, graph.losses.const_data_ptr<float>() + i, sizeof(float),
                       stream_);
    }
    done_.record(stream_);
    for (const SequenceBatch& batch : batches) done_.make_wait(batch.stream);
  }

  /// `numbers` takes a pass. On a lane of one learner.
  template <typename Numbers>
  std::vector<float> evaluate(const Rows& rows, const Event& updated, const Numbers& numbers) {
    const std::scoped_lock lock(mutex_, computing());
    const c10::cuda::CUDAStreamGuard guard(native_);
    const at::NoGradGuard no_gradient;
    updated.make_wait(stream_);
    const at::Tensor given = room(rows.samples(), rows.width);
    upload_.send(rows.values, given.mutable_data_ptr<std::int32_t>(), stream_);
    SequenceModel::Pass pass = make_pass(given, rows.samples(), rows.width);
    pass.noise = at::Tensor();
    const at::Tensor out = numbers(pass).to(at::kFloat).contiguous().cpu();
    done_.record(stream_);
    const float* const begin = out.const_data_ptr<float>();
    return {begin, begin + out.numel()};
  }

 private:
  at::Tensor room(std::int64_t samples, std::int64_t width) const {
    return at::zeros({samples * width + learners_}, on(stream_.device()).dtype(at::kInt));
  }

  SequenceModel::Pass make_pass(const at::Tensor& given, std::int64_t samples,
                                std::int64_t width) const {
    const std::int64_t numbers = samples * width;
    return {given.narrow(0, 0, numbers).view({samples, width}).to(at::kLong), parameters_, table_,
            given.narrow(0, numbers, learners_), learners_};
  }

  std::pair<at::Tensor, std::vector<at::Tensor>> differentiate(const at::Tensor& given,
                                                               std::int64_t width) {
    const at::Tensor losses = model_.loss(make_pass(given, learners_ * batch_, width)).tensor;
    // No learner's loss depends on another's parameters, so the sum's gradient is that of each.
    std::vector<at::Tensor> gradient = torch::autograd::grad({losses.sum()}, parameters_);
    for (at::Tensor& part : gradient) part = part.contiguous();
    return {losses.detach(), std::move(gradient)};
  }

  Graph& graph_for(std::int64_t width) {
    std::unique_ptr<Graph>& graph = graphs_[width];
    if (graph) return *graph;
    const std::lock_guard lock(computing());
    auto made = std::make_unique<Graph>();
    made->given = room(learners_ * batch_, width);
    for (int i = 0; i < kWarmUps; ++i) differentiate(made->given, width);
    native_.synchronize();
    // Other threads may use the GPU meanwhile.
    made->graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    std::tie(made->losses, made->gradient) = differentiate(made->given, width);
    made->graph.capture_end();

    for (std::int64_t learner = 0; learner < learners_; ++learner) {
      std::vector<at::Tensor> own;
      for (const at::Tensor& all : made->gradient) {
        own.push_back(learners_ == 1 ? all : all.select(0, learner));
      }
      made->gather.push_back(into_one_array(stream_.device(), own));
    }
    graph = std::move(made);
    return *graph;
  }

  const SequenceModel& model_;
  at::Tensor table_;
  std::int64_t learners_;
  std::int64_t batch_;  // of each
  std::mutex mutex_;
  c10::cuda::CUDAStream native_;
  core::Stream stream_;  // the same
  Event received_;       // what the batch's own stream had before
  Event done_;
  Upload upload_;
  std::vector<at::Tensor> parameters_;
  at::cuda::MempoolId_t pool_;  // of all graphs, as no two are replayed at the same time
  std::map<std::int64_t, std::unique_ptr<Graph>> graphs_;  // by width
};

class DeviceSequenceEngine final : public SequenceEngine {
 public:
  DeviceSequenceEngine(core::Device device, std::unique_ptr<SequenceModel> model,
                       const Options& options)
      : device_(device),
        model_(std::move(model)),
        weights_(device, model_->parameters().elements()),
        table_(device, static_cast<std::int64_t>(options.table.size())),
        working_(device, model_->parameters().tensors(), weights_.data()),
        updated_(device) {
    be_deterministic();
    // Products of matrices are in TF32, as convolutions are.
    at::globalContext().setAllowTF32CuBLAS(true);
    initialise(options);
    const std::int64_t entries = table_.size() / options.columns;
    const at::Tensor table =
        view(device, table_.data(), {entries, options.columns}, {options.columns, 1});
    for (int i = 0; i < options.at_once; ++i) {
      lanes_.push_back(std::make_unique<Lane>(device, *model_, working_, table, 1, options.batch));
    }
    const std::int64_t joined = joined_size(options.joined, options.batch, kMostSamples);
    if (joined == 1) return;
    joined_ = std::make_unique<Lane>(device, *model_, working_, table, joined, options.batch);
  }

  core::Device device() const override { return device_; }
  const Parameters& parameters() const override { return model_->parameters(); }
  std::span<float> weights() override { return weights_.span(); }

  void weights_written(const core::Stream& stream) override {
    for (const auto& lane : lanes_) lane->make_wait(stream);
    if (joined_) joined_->make_wait(stream);
    working_.refresh(stream);
    updated_.record(stream);
  }

  std::int64_t joined() const override { return joined_ ? joined_->learners() : 1; }
  void gradients(std::span<const SequenceBatch> batches) override {
    translated(device_, [&] {
      while (!batches.empty()) {
        Lane& lane = can_join(batches) ? *joined_ : next_lane();
        const auto some = batches.first(static_cast<std::size_t>(lane.learners()));
        lane.gradients(some, updated_);
        batches = batches.subspan(some.size());
      }
    });
  }
  std::vector<float> score(const Rows& rows) override {
    return translated(device_, [&] {
      return next_lane().evaluate(rows, updated_, [&](const SequenceModel::Pass& pass) {
        return model_->score(pass).tensor;
      });
    });
  }
  std::vector<float> answer(const Rows& rows) override {
    return translated(device_, [&] {
      return next_lane().evaluate(rows, updated_, [&](const SequenceModel::Pass& pass) {
        return model_->answer(pass).tensor;
      });
    });
  }

 private:
  void initialise(const Options& options) {
    const core::Stream stream = core::Stream::cuda(device_);
    const auto upload = [&](std::span<float> to, const std::vector<float>& values) {
      core::cuda::copy(to.data(), values.data(), static_cast<std::int64_t>(to.size_bytes()),
                       stream);
    };
    std::vector<float> values(weights_.span().size());
    model_->parameters().initialise(options.seed, values);
    upload(weights(), values);
    upload(table_.span(), options.table);
    weights_written(stream);
    core::cuda::synchronize(stream);
  }

  bool can_join(std::span<const SequenceBatch> batches) const {
    if (!joined_ || static_cast<std::int64_t>(batches.size()) < joined()) return false;
    const auto some = batches.first(static_cast<std::size_t>(joined()));
    return std::ranges::all_of(some, [&](const SequenceBatch& batch) {
      return batch.rows.width == some.front().rows.width;
    });
  }

  /// In turn, so that all of them have as much to do.
  Lane& next_lane() { return *lanes_[next_++ % lanes_.size()]; }

  core::Device device_;
  std::unique_ptr<SequenceModel> model_;
  core::Array<float> weights_;
  core::Array<float> table_;
  WorkingWeights working_;
  Event updated_;  // the weights that are computed with
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Lane> joined_;  // or none
  std::atomic<std::size_t> next_ = 0;
};

}  // namespace

std::unique_ptr<SequenceEngine> make_sequence_engine(core::Device device,
                                                     std::unique_ptr<SequenceModel> model,
                                                     SequenceEngine::Options options) {
  return translated(device, [&]() -> std::unique_ptr<SequenceEngine> {
    return std::make_unique<DeviceSequenceEngine>(device, std::move(model), options);
  });
}

}  // namespace train::models::cuda
