#include "train/loop/checkpoint.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/method_state.h"
#include "scalecom/state/safetensors.h"
#include "train/machine/host_copy.h"
#include "train/runs/json.h"
#include "train/runs/run_folder.h"

namespace train::loop {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;
namespace state = scalecom::state;

constexpr const char* kModel = "model.safetensors";
constexpr const char* kStanding = "standing.json";
constexpr const char* kMemories = "memories";

/// The arrays that make up the model.
struct Part {
  std::string prefix;
  std::span<const scalecom::layout::Tensor> tensors;
  std::span<float> values;  ///< on the model's device
};

std::vector<Part> parts(Replica& replica) {
  const tasks::Task& task = replica.task();
  std::vector<Part> parts{{"weights/", task.tensors(), replica.weights()},
                          {"figures/", task.figures(), replica.figures()}};
  for (const optimizers::Optimizer::State& state : replica.states()) {
    parts.push_back({state.name + "/", task.tensors(), state.values});
  }
  return parts;
}

/// Calls visit(name in the file, tensor, its place) for the tensors of a part, of which `host` is
/// the host's copy.
template <typename Visit>
void for_each_tensor(const Part& part, core::AlignedArray<float>& host, const Visit& visit) {
  float* at = host.data();
  for (const auto& tensor : part.tensors) {
    const auto elements = static_cast<std::size_t>(tensor.elements());
    visit(part.prefix + tensor.name, tensor, std::span(at, elements));
    at += elements;
  }
}

std::int64_t step_of(const state::SafetensorsReader& file) {
  const auto found = file.metadata().find("step");
  std::int64_t step = -1;
  if (found != file.metadata().end()) {
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), step);
  }
  return step;
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
/// Sums over all learners can be counted too.
constexpr std::int64_t kMostOfOne = kMost / runs::kMostLearners;

std::int64_t count_of(const nlohmann::ordered_json& tally, const char* key) {
  return runs::whole_number(tally, key, 0, kMostOfOne);
}

runs::Tally tally_of(const nlohmann::ordered_json& json) {
  // Runs from before there were groups have neither of the last two.
  return {count_of(json, "sent"), count_of(json, "counted"), count_of(json, "steps"),
          json.contains("most") ? count_of(json, "most") : 0,
          json.contains("inside") ? count_of(json, "inside") : 0};
}

Standing standing_of(const nlohmann::ordered_json& json, std::int64_t batch) {
  Standing standing;
  standing.step = runs::whole_number(json, "step", 0, runs::kMostSteps);
  json.at("seconds").get_to(standing.seconds);
  json.at("loss").get_to(standing.loss);
  standing.losses = runs::whole_number(json, "losses", 0, runs::kMostSteps);
  for (const auto& tally : json.at("traffic")) standing.tallies.push_back(tally_of(tally));
  if (standing.tallies.empty() || standing.tallies.size() > runs::kMostLearners) {
    throw core::UsageError(core::concat("it is of ", standing.tallies.size(), " learners"));
  }
  // Runs had one number of learners before they said how many samples they have seen.
  const auto learners = static_cast<std::int64_t>(standing.tallies.size());
  standing.samples = json.contains("samples") ? runs::whole_number(json, "samples", 0, kMost)
                                              : standing.step * learners * batch;
  return standing;
}

}  // namespace

void write_standing(const fs::path& folder, const Standing& standing) {
  nlohmann::ordered_json tallies;
  for (const runs::Tally& tally : standing.tallies) {
    tallies.push_back({{"sent", tally.sent},
                       {"counted", tally.counted},
                       {"steps", tally.steps},
                       {"most", tally.most},
                       {"inside", tally.inside}});
  }
  runs::write_json(folder / kStanding, {{"step", standing.step},
                                        {"samples", standing.samples},
                                        {"seconds", standing.seconds},
                                        {"loss", standing.loss},
                                        {"losses", standing.losses},
                                        {"traffic", tallies}});
}

Standing read_standing(const fs::path& folder, std::int64_t batch) {
  const auto json = runs::read_json(folder / kStanding);
  try {
    return standing_of(json, batch);
  } catch (const nlohmann::json::exception& error) {
    throw core::UsageError(core::concat("[checkpoint] ", (folder / kStanding).string(),
                                        " is damaged: ", error.what()));
  } catch (const core::UsageError& error) {
    throw core::UsageError(core::concat("[checkpoint] ", (folder / kStanding).string(),
                                        " is damaged: ", error.what()));
  }
}

void write_model(const fs::path& folder, Replica& replica, std::int64_t step,
                 const core::Stream& stream) {
  std::vector<core::AlignedArray<float>> copies;
  std::vector<state::TensorView> views;
  for (const Part& part : parts(replica)) {
    copies.push_back(machine::to_host(part.values, stream));
    for_each_tensor(part, copies.back(),
                    [&](std::string name, const auto& tensor, std::span<float> place) {
                      views.push_back({std::move(name), tensor.shape, place});
                    });
  }
  state::write_safetensors(folder / kModel, views, {{"step", std::to_string(step)}});
}

std::int64_t read_model(const fs::path& folder, Replica& replica, const core::Stream& stream) {
  const state::SafetensorsReader file(folder / kModel);
  for (const Part& part : parts(replica)) {
    core::AlignedArray<float> host(static_cast<std::int64_t>(part.values.size()));
    for_each_tensor(
        part, host, [&](const std::string& name, const auto& tensor, std::span<float> place) {
          if (file.tensor(name).shape != tensor.shape) {
            throw core::UsageError(core::concat("[checkpoint] ", file.path().string(), ": '", name,
                                                "' has another shape than in this model"));
          }
          file.read(name, place);
        });
    machine::from_host({host.data(), part.values.size()}, part.values, stream);
  }
  replica.written(stream);
  return step_of(file);
}

void write_memory(const fs::path& folder, int learner, int learners,
                  const scalecom::methods::Method& method,
                  const scalecom::methods::Learner& holder) {
  state::save_method(folder / kMemories, method, learner, learners, holder);
}

void read_memory(const fs::path& folder, scalecom::methods::Method& method,
                 const scalecom::methods::Learner& holder) {
  state::load_method(folder / kMemories, method, holder);
}

}  // namespace train::loop
