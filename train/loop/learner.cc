#include "train/loop/learner.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/checksum.h"
#include "train/machine/host_copy.h"

namespace train::loop {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;
using nlohmann::ordered_json;

std::string digest(std::span<const float> values) {
  scalecom::state::Checksum sum;
  while (!values.empty()) {
    const auto block = std::min<std::size_t>(values.size(), scalecom::state::Checksum::kBlock);
    sum.add(values.first(block));
    values = values.subspan(block);
  }
  return sum.text();
}

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

}  // namespace

Learner::Learner(const Job& job, comm::Communicator& world)
    : job_(job),
      world_(world),
      control_(world.split(0, world.rank())),
      neighbours_(world.split(job.process, world.rank())),
      method_(scalecom::methods::make(job.config.spec)),
      layout_(scalecom::layout::make_layout(job.replica.task().tensors(), method_->rate_policy())),
      order_(job.config.seed, job.replica.task().samples(), job.config.learners, job.config.batch),
      samples_(static_cast<std::size_t>(job.config.batch)),
      warmup_(runs::warmup_of(job.config.spec)) {}

void Learner::run() {
  comm::together(*control_, [&] { prepare(); });
  const auto holder = method_->learner(*control_);
  comm::together(*control_, [&] { restore(holder); });
  if (job_.config.similarity_every > 0) probe_.emplace(*control_, *method_, layout_);
  first_ = known_ = done_;
  started_ = std::chrono::steady_clock::now();
  if (is_first()) job_.observer.on_start(done_, job_.config.steps);
  bool stop = false;
  while (done_ < job_.config.steps && !stop) {
    stop = step();
    const bool last = stop || done_ == job_.config.steps;
    if (at_milestone() || checkpoint_due() || last) settle();
    if (at_milestone() || done_ == job_.config.steps) report_metrics();
    if (checkpoint_due() || last) write_checkpoint();
  }
  if (done_ == job_.config.steps) finish();
}

void Learner::prepare() {
  const core::Device device = job_.replica.task().device();
  if (device.is_cuda()) stream_ = core::Stream::cuda(device);
  gradient_ = core::Array<float>(device, layout_.elements());
  losses_.emplace(device);
}

void Learner::restore(const scalecom::methods::Learner& holder) {
  if (!job_.checkpoint) return;
  const Standing standing = read_standing(*job_.checkpoint, job_.config.batch);
  read_memory(*job_.checkpoint, *method_, holder);
  check_step("memories", method_->steps(), standing.step);
  if (neighbours_->rank() == 0) {
    check_step("model", read_model(*job_.checkpoint, job_.replica, stream_), standing.step);
  }
  auto tallies = standing.tallies;
  if (tallies.size() != static_cast<std::size_t>(world_.size())) {
    tallies = runs::divide_anew(tallies, world_.size());
  }
  tally_ = tallies[static_cast<std::size_t>(world_.rank())];
  order_.continue_after(standing.step, standing.samples);
  loss_sum_ = standing.loss;
  loss_count_ = standing.losses;
  seconds_before_ = standing.seconds;
  done_ = standing.step;
}

// Parts of two saves, which someone has put together.
void Learner::check_step(const char* part, std::int64_t step, std::int64_t standing) const {
  if (step == standing) return;
  throw core::UsageError(core::concat(
      "[checkpoint] ", job_.checkpoint->string(), " is not of one save: its ", part, " is of step ",
      step, " and its standing of step ", standing, "; remove it to go on from the one before"));
}

Learner::Moved Learner::moved() const {
  const scalecom::methods::LevelTraffic levels = method_->level_traffic();
  return {world_.counters().total() + levels.between.total(), levels.inside.total()};
}

bool Learner::step() {
  order_.batch(world_.rank(), done_, samples_);
  compute({world_.rank(), done_, samples_, gradient_.span(), losses_->next(), stream_});
  losses_->send(stream_);

  if (similarity_due()) probe_->before(gradient_.span(), stream_);
  const Moved before = moved();
  const core::Buffer buffer{gradient_.data(), gradient_.size(), core::DType::kFloat32,
                            gradient_.device()};
  method_->start(buffer, layout_, world_, stream_).wait();
  const Moved after = moved();
  tally_.add(after.between - before.between, done_ >= warmup_ && done_ > first_,
             after.inside - before.inside);
  if (similarity_due()) report_similarity();

  // Nobody gets past this before every learner has its gradient, so the weights may change then. A
  // GPU is given the next step before the loss of this one is known, so that it has work meanwhile.
  const bool stop = confer(gradient_.device().is_cuda() ? 1 : 0);
  if (neighbours_->rank() == 0) job_.replica.update(gradient_.span(), done_, stream_);
  neighbours_->barrier();
  ++done_;
  if (is_first()) job_.observer.on_step(done_, last_loss_);
  return stop;
}

void Learner::compute(const tasks::Shard& shard) {
  if (!job_.replica.task().joins_learners()) {
    job_.replica.gradients({&shard, 1});
    return;
  }
  // The learners of this process are threads of it: a shard can be lent while all are here.
  const auto lent = comm::gather(*neighbours_, &shard);
  comm::together(*neighbours_, [&] {
    if (neighbours_->rank() != 0) return;
    std::vector<tasks::Shard> shards;
    for (const tasks::Shard* const each : lent) shards.push_back(*each);
    job_.replica.gradients(shards);
  });
}

bool Learner::confer(std::int64_t lag) {
  struct Word {
    double loss;
    std::int64_t stop;
  };
  const bool knows = losses_->waiting() > lag;
  const Word mine{knows ? losses_->receive() : 0, job_.stop.load() ? 1 : 0};
  const auto words = comm::gather(*control_, mine);
  double loss = 0;
  bool stop = false;
  for (const Word& word : words) {
    loss += word.loss / static_cast<double>(words.size());
    stop = stop || word.stop != 0;
  }
  if (!knows) return stop;
  if (!std::isfinite(loss)) {
    throw core::CheckError(core::concat("[train] the loss is not finite at step ", known_,
                                        ": training diverged; a lower --lr may help"));
  }
  ++known_;
  last_loss_ = loss;
  loss_sum_ += loss;
  ++loss_count_;
  return stop;
}

void Learner::settle() {
  while (losses_->waiting() > 0) static_cast<void>(confer(0));
}

void Learner::share_figures() {
  const auto figures = job_.replica.figures();
  if (figures.empty() || neighbours_->size() == world_.size()) return;
  auto host = is_first() ? machine::to_host(figures, stream_)
                         : core::AlignedArray<float>(static_cast<std::int64_t>(figures.size()));
  const std::span<float> values(host.data(), figures.size());
  control_->broadcast(std::as_writable_bytes(values), 0);
  // Nobody scores before they are written.
  if (neighbours_->rank() == 0) machine::from_host(values, figures, stream_);
  neighbours_->barrier();
}

tasks::Score Learner::evaluate() {
  share_figures();
  const auto part = comm::share(job_.replica.task().test_samples(), world_.size(), world_.rank());
  tasks::Score sum;
  for (const tasks::Score& score :
       comm::gather(*control_, job_.replica.score(part.begin, part.end))) {
    sum.loss += score.loss;
    sum.hits += score.hits;
    sum.samples += score.samples;
  }
  return sum;
}

double Learner::epochs_after(std::int64_t steps) const {
  const std::int64_t samples = job_.replica.task().samples();
  return static_cast<double>(order_.seen_after(steps)) / static_cast<double>(samples);
}

void Learner::report_similarity() {
  const similarity::Reading reading = probe_->after(gradient_.span(), stream_);
  comm::together(*control_, [&] {
    if (!is_first()) return;
    ordered_json line{{"step", done_ + 1}, {"epoch", epochs_after(done_ + 1)}};
    line.update(to_json(reading));
    job_.folder.append_similarity(line);
  });
}

void Learner::report_metrics() {
  const tasks::Task& task = job_.replica.task();
  const tasks::Score score = evaluate();
  const auto tallies = comm::gather(*control_, tally_);
  comm::together(*control_, [&] {
    if (!is_first()) return;
    const ordered_json line{{"step", done_},
                            {"epoch", epochs_after(done_)},
                            {"loss", loss_sum_ / static_cast<double>(loss_count_)},
                            {"test_loss", score.loss / static_cast<double>(score.samples)},
                            {"value", task.value(score)},
                            {"bytes_per_rank", runs::bytes_per_rank(tallies)},
                            {"bytes_per_rank_step", or_null(runs::bytes_per_rank_step(tallies))},
                            {"seconds", seconds()}};
    job_.folder.append(line);
    job_.observer.on_metrics(line);
  });
  loss_sum_ = 0;
  loss_count_ = 0;
}

void Learner::write_checkpoint() {
  const auto folder = job_.folder.unfinished_checkpoint();
  const auto tallies = comm::gather(*control_, tally_);
  comm::together(*control_, [&] {
    if (is_first()) job_.folder.clear_unfinished_checkpoint();
  });
  const auto holder = method_->learner(*control_);
  comm::together(*control_, [&] {
    write_memory(folder, world_.rank(), world_.size(), *method_, holder);
    if (!is_first()) return;
    write_model(folder, job_.replica, done_, stream_);
    write_standing(folder,
                   {done_, order_.seen_after(done_), seconds(), loss_sum_, loss_count_, tallies});
  });
  comm::together(*control_, [&] {
    if (is_first()) job_.folder.finish_checkpoint(done_);
  });
}

void Learner::write_transcripts() {
  const std::int64_t samples = job_.replica.task().transcript_samples();
  if (samples == 0) return;
  const auto part = comm::share(samples, world_.size(), world_.rank());
  comm::together(*control_, [&] {
    job_.folder.write_transcripts(world_.rank(), job_.replica.transcripts(part.begin, part.end));
  });
  comm::together(*control_, [&] {
    if (is_first()) job_.folder.join_transcripts(world_.size());
  });
}

ordered_json Learner::last_metrics() const {
  auto lines = job_.folder.metrics();
  if (lines.empty() || lines.back()["step"] != job_.config.steps ||
      !lines.back().contains("value") || !lines.back().contains("loss")) {
    const auto folder = job_.folder.path();
    throw core::IoError(core::concat(
        "[run] ", (folder / "metrics.jsonl").string(), " has lost its line of step ",
        job_.config.steps, "; remove the last folder of ", (folder / "checkpoints").string(),
        " and resume, to take that part of the run again"));
  }
  return std::move(lines.back());
}

void Learner::finish() {
  write_transcripts();
  const auto tallies = comm::gather(*control_, tally_);
  std::int64_t peak = 0;
  for (const std::int64_t bytes : comm::gather(*control_, machine::peak_bytes()))
    peak = std::max(peak, bytes);
  const int members = world_.size() / method_->learner(*control_).learners;
  comm::together(*control_, [&] {
    if (!is_first()) return;
    const runs::Config& config = job_.config;
    const double dense =
        runs::dense_bytes_per_rank_step(layout_.elements(), config.learners, members);
    const auto bytes = runs::bytes_per_rank_step(tallies);
    const bool sent = bytes.value_or(0) > 0;
    const double whole = runs::bytes_per_rank(tallies);
    const double dense_whole = dense * static_cast<double>(config.steps);
    const auto last = last_metrics();
    const auto weights = machine::to_host(job_.replica.weights(), stream_);
    ordered_json result{
        {"task", config.task},
        {"method", config.method},
        {"learners", config.learners},
        {"seed", config.seed},
        {"metric", job_.replica.task().metric()},
        {"value", last["value"]},
        {"steps", config.steps},
        {"seconds", seconds()},
        {"bytes_per_rank_step", or_null(bytes)},
        {"max_rank_bytes", or_null(runs::max_rank_bytes(tallies))},
        {"effective_rate", sent ? ordered_json(dense / *bytes) : nullptr},
        {"whole_run_rate",
         whole > 0 && dense_whole > 0 ? ordered_json(dense_whole / whole) : nullptr},
        {"peak_bytes", peak},
        {"loss", last["loss"]},
        {"parameters", layout_.elements()},
        {"weights", digest({weights.data(), static_cast<std::size_t>(weights.size())})}};
    if (members > 1) {
      result["group"] = members;
      result["inside_bytes_per_rank_step"] = or_null(runs::inside_bytes_per_rank_step(tallies));
    }
    if (gradient_.device().is_cuda()) {
      result["device"] = core::to_string(gradient_.device());
      result["device_peak_bytes"] = job_.device_memory.peak();
    }
    job_.folder.write_result(result);
  });
}

bool Learner::at_milestone() const {
  constexpr std::int64_t kMost = 100;
  const std::int64_t epochs = order_.epochs_after(job_.config.steps);
  const std::int64_t every = std::max<std::int64_t>(1, (epochs + kMost - 1) / kMost);
  return order_.epochs_after(done_) / every > order_.epochs_after(done_ - 1) / every;
}

bool Learner::checkpoint_due() const {
  return job_.checkpoint_every ? done_ % *job_.checkpoint_every == 0 : at_milestone();
}

bool Learner::similarity_due() const {
  return probe_ && (done_ + 1) % job_.config.similarity_every == 0;
}

double Learner::seconds() const {
  const std::chrono::duration<double> here = std::chrono::steady_clock::now() - started_;
  return seconds_before_ + here.count();
}

}  // namespace train::loop
