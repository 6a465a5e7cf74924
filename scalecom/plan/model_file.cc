#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/plan/model.h"
#include "scalecom/state/file.h"
#include "scalecom/state/json.h"

namespace scalecom::plan {
namespace {

using core::concat;
using state::JsonCursor;

constexpr std::int64_t kLongestFile = std::int64_t{64} << 20;
constexpr std::int64_t kMostElements = std::int64_t{1} << 44;
constexpr std::size_t kMostDimensions = 16;
constexpr double kLargestFigure = 1e24;

/// One object of the file: the members that it may have, each read once.
class Members {
 public:
  Members(JsonCursor& cursor, std::string what) : cursor_(cursor), what_(std::move(what)) {}

  template <typename Read>
  Members& on(const std::string& key, Read read) {
    readers_[key] = read;
    return *this;
  }
  Members& number(const std::string& key, double* target) {
    return on(key, [this, target] {
      *target = cursor_.number();
      if (!(*target >= 0) || *target > kLargestFigure) {
        cursor_.fail(concat("a figure of ", what_, " is not between 0 and ", kLargestFigure));
      }
    });
  }
  Members& text(const std::string& key, std::string* target) {
    return on(key, [this, target] { *target = cursor_.string(); });
  }

  void read() {
    cursor_.object([this](const std::string& key) {
      const auto found = readers_.find(key);
      if (found == readers_.end()) {
        std::vector<std::string> known;
        for (const auto& [name, reader] : readers_) known.push_back(name);
        cursor_.fail(
            concat(what_, " has an unknown field '", key, "'; known: ", core::join(known)));
      }
      if (!seen_.insert(key).second) cursor_.fail(concat(what_, " has '", key, "' twice"));
      found->second();
    });
  }
  bool has(const std::string& key) const { return seen_.contains(key); }
  void require(const std::string& key) const {
    if (!has(key)) cursor_.fail(concat(what_, " lacks the field '", key, "'"));
  }

 private:
  JsonCursor& cursor_;
  std::string what_;
  std::map<std::string, std::function<void()>> readers_;
  std::set<std::string> seen_;
};

std::vector<std::int64_t> read_shape(JsonCursor& cursor) {
  std::vector<std::int64_t> shape;
  double elements = 1;
  cursor.array([&] {
    shape.push_back(cursor.whole_number());
    elements *= static_cast<double>(shape.back());
    if (shape.size() > kMostDimensions) cursor.fail("a tensor of over 16 dimensions");
    if (elements > static_cast<double>(kMostElements))
      cursor.fail("a tensor of over 2^44 elements");
  });
  return shape;
}

layout::Tensor read_tensor(JsonCursor& cursor, const std::string& layer) {
  layout::Tensor tensor;
  Members members(cursor, concat("a tensor of layer '", layer, "'"));
  members.text("name", &tensor.name).on("shape", [&] { tensor.shape = read_shape(cursor); });
  members.read();
  members.require("name");
  members.require("shape");
  return tensor;
}

/// Which of the two forms a layer has.
enum class Form { kUnknown, kFlops, kTimes };

Layer read_layer(JsonCursor& cursor, std::size_t number, Form& form) {
  Layer layer;
  const std::string what = concat("layer ", number);
  double forward_ms = 0;
  double backward_ms = 0;
  Members members(cursor, what);
  members.text("name", &layer.name)
      .number("flops", &layer.forward_flops)
      .number("forward_ms", &forward_ms)
      .number("backward_ms", &backward_ms)
      .on("tensors",
          [&] { cursor.array([&] { layer.tensors.push_back(read_tensor(cursor, layer.name)); }); });
  members.read();
  for (const char* key : {"name", "tensors"}) members.require(key);
  const bool timed = members.has("forward_ms") || members.has("backward_ms");
  if (timed) {
    members.require("forward_ms");
    members.require("backward_ms");
  } else {
    members.require("flops");
  }
  const Form own = timed ? Form::kTimes : Form::kFlops;
  if (form != Form::kUnknown && form != own) {
    cursor.fail(concat(what, " has ", timed ? "times" : "no times",
                       ", unlike those before it: give them for all layers or for none"));
  }
  form = own;
  layer.forward_seconds = forward_ms / 1e3;
  layer.backward_seconds = backward_ms / 1e3;
  return layer;
}

void check(const Model& model, Form form, const JsonCursor& cursor) {
  std::set<std::string> names;
  double elements = 0;
  double work = 0;
  for (const Layer& layer : model.layers) {
    work +=
        form == Form::kTimes ? layer.forward_seconds + layer.backward_seconds : layer.forward_flops;
    for (const layout::Tensor& tensor : layer.tensors) {
      elements += static_cast<double>(tensor.elements());
      if (tensor.name.empty()) cursor.fail("a tensor has no name");
      if (!names.insert(tensor.name).second) {
        cursor.fail(concat("two tensors are named '", tensor.name, "'"));
      }
    }
  }
  if (!(elements >= 1)) cursor.fail("the model has no parameters");
  if (elements > static_cast<double>(kMostElements)) cursor.fail("a model of over 2^44 parameters");
  if (!(work > 0)) cursor.fail("the layers take no time at all");
}

}  // namespace

Model parse_model(std::string_view json) {
  Model model;
  JsonCursor cursor(json);
  try {
    Form form = Form::kUnknown;
    double batch = 0;
    double other_ms = 0;
    Members members(cursor, "the model");
    members.text("name", &model.name)
        .text("sample", &model.sample)
        .number("batch", &batch)
        .number("other_ms", &other_ms)
        .on("layers", [&] {
          cursor.array(
              [&] { model.layers.push_back(read_layer(cursor, model.layers.size(), form)); });
        });
    members.read();
    cursor.end();
    for (const char* key : {"name", "layers"}) members.require(key);
    check(model, form, cursor);
    if (form == Form::kTimes) {
      members.require("batch");
      if (batch < 1 || batch > 1e12 || batch != std::floor(batch)) {
        cursor.fail("'batch' is no whole number from 1 on");
      }
      model.measured_batch = static_cast<std::int64_t>(batch);
      model.other_seconds = other_ms / 1e3;
    } else if (members.has("batch") || members.has("other_ms")) {
      cursor.fail("'batch' and 'other_ms' belong to a model whose layers have times");
    }
  } catch (const state::JsonError& error) {
    throw core::UsageError(concat("[plan] this is no model: ", error.what()));
  }
  if (model.sample.empty()) model.sample = "a sample";
  return model;
}

Model read_model(const std::filesystem::path& path) {
  const state::File file = state::File::open(path);
  if (file.size() > kLongestFile) {
    throw core::UsageError(concat("[plan] ", path.string(), " is over 64 MiB: it is no model"));
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  try {
    return parse_model(text);
  } catch (const core::UsageError& error) {
    throw core::UsageError(concat(error.what(), " (", path.string(), ")"));
  }
}

}  // namespace scalecom::plan
