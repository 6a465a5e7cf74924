#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/plan/model.h"
#include "tests/state/temporary_folder.h"

namespace scalecom::plan {
namespace {

constexpr const char* kTensors = R"("tensors": [{"name": "w", "shape": [3, 4]}])";

std::string file(const std::string& layer, const std::string& more = "") {
  return core::concat(R"({"name": "mine", )", more, R"("layers": [)", layer, "]}");
}

std::string layer(const std::string& fields) {
  return core::concat(R"({"name": "a", )", kTensors, fields.empty() ? "" : ", ", fields, "}");
}

std::string refusal(const std::string& text) {
  try {
    parse_model(text);
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "taken";
}

TEST(ModelFile, WithFlops) {
  const Model model = parse_model(file(layer(R"("flops": 2.5e9)")));
  EXPECT_EQ(model.name, "mine");
  ASSERT_EQ(model.layers.size(), 1U);
  EXPECT_EQ(model.elements(), 12);
  EXPECT_EQ(model.forward_flops(), 2.5e9);
  EXPECT_FALSE(model.measured());
}

TEST(ModelFile, WithTimes) {
  const Model model = parse_model(file(layer(R"("forward_ms": 1.5, "backward_ms": 3)"),
                                       R"("batch": 32, "other_ms": 0.5, "sample": "a row", )"));
  EXPECT_TRUE(model.measured());
  EXPECT_EQ(model.measured_batch, 32);
  EXPECT_DOUBLE_EQ(model.layers[0].forward_seconds, 1.5e-3);
  EXPECT_DOUBLE_EQ(model.layers[0].backward_seconds, 3e-3);
  EXPECT_DOUBLE_EQ(model.other_seconds, 0.5e-3);
  EXPECT_EQ(model.sample, "a row");
}

TEST(ModelFile, WhatIsMissingIsNamed) {
  const auto names = [](const std::string& text, const std::string& word) {
    EXPECT_NE(refusal(text).find(word), std::string::npos) << refusal(text);
  };
  names(R"({"layers": []})", "'name'");
  names(R"({"name": "x"})", "'layers'");
  names(file(layer("")), "'flops'");
  names(file(layer(R"("forward_ms": 1)")), "'backward_ms'");
  names(file(layer(R"("backward_ms": 1)")), "'forward_ms'");
  names(file(layer(R"("forward_ms": 1, "backward_ms": 1)")), "'batch'");
  names(file(R"({"name": "a", "flops": 1})"), "'tensors'");
  names(file(R"({"flops": 1, "tensors": []})"), "'name'");
  names(file(R"({"name": "a", "flops": 1, "tensors": [{"name": "w"}]})"), "'shape'");
  names(file(R"({"name": "a", "flops": 1, "tensors": [{"shape": [1]}]})"), "'name'");
}

TEST(ModelFile, WhatCannotBeIsRefused) {
  const std::string good = layer(R"("flops": 1)");
  for (const std::string& text : {
           std::string(),
           std::string("{"),
           std::string("[]"),
           file(good) + "x",
           file(layer(R"("flops": -1)")),
           file(layer(R"("flops": 1e30)")),
           file(layer(R"("flops": 1e999)")),
           file(layer(R"("flops": "1")")),
           file(layer(R"("flops": 0)")),
           file(""),
           file(layer(R"("flops": 1, "flops": 1)")),
           file(layer(R"("flops": 1, "colour": 1)")),
           file(good + "," + good),
           file(good, R"("batch": 3, )"),
           file(layer(R"("forward_ms": 1, "backward_ms": 1)"), R"("batch": 0, )"),
           file(layer(R"("forward_ms": 1, "backward_ms": 1)"), R"("batch": 1.5, )"),
           file(good + R"(,{"name": "b", "forward_ms": 1, "backward_ms": 1, "tensors": []})"),
           file(R"({"name": "a", "flops": 1, "tensors": [{"name": "w", "shape": [-1]}]})"),
           file(R"({"name": "a", "flops": 1, "tensors": [{"name": "", "shape": [1]}]})"),
           file(R"({"name": "a", "flops": 1, "tensors": [{"name": "w", "shape": [0]}]})"),
           file(R"({"name": "a", "flops": 1,
                    "tensors": [{"name": "w", "shape": [9999999999, 9999999999]}]})"),
       }) {
    EXPECT_NE(refusal(text).find("[plan]"), std::string::npos) << text;
  }
}

// Each for its own reason, and not for another.
TEST(ModelFile, WhyItIsRefused) {
  const auto because = [](const std::string& text, const std::string& words) {
    EXPECT_NE(refusal(text).find(words), std::string::npos) << refusal(text);
  };
  const auto of_shape = [](const std::string& shape) {
    return file(core::concat(R"({"name": "b", "flops": 1, "tensors": [{"name": "v", "shape": [)",
                             shape, "]}]}"));
  };
  const std::string good = layer(R"("flops": 5)");
  const std::string times = R"("forward_ms": 1, "backward_ms": 1)";
  because(file(good + R"(,{"name": "b", "flops": -1, "tensors": []})"), "not between 0");
  because(file(good + R"(,{"name": "b", )" + times + R"(, "tensors": []})"), "unlike those before");
  because(file(good, R"("other_ms": 1, )"), "'other_ms'");
  because(file(layer(times), R"("batch": 1e13, )"), "'batch' is no whole number");
  because(of_shape("1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"), "over 16 dimensions");
  EXPECT_EQ(refusal(of_shape("1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1")), "taken");
  because(of_shape("4194304, 4194305"), "a tensor of over 2^44 elements");
  EXPECT_EQ(refusal(of_shape("4194304, 4194304")), "taken");
  because(file(good + R"(,{"name": "b", "flops": 1,
                           "tensors": [{"name": "v", "shape": [4194304, 4194304]}]})"),
          "over 2^44 parameters");
}

TEST(ModelFile, AForwardPassMayTakeNoTimeAndASampleHasAName) {
  const Model model =
      parse_model(file(layer(R"("forward_ms": 0, "backward_ms": 1)"), R"("batch": 1, )"));
  EXPECT_EQ(model.layers.front().backward_seconds, 1e-3);
  EXPECT_EQ(model.sample, "a sample");
}

TEST(ModelFile, EveryBeginningOfAFileIsRefused) {
  const std::string text =
      file(layer(R"("forward_ms": 1.5e-1, "backward_ms": 3)"), R"("batch": 32, )");
  ASSERT_EQ(refusal(text), "taken");
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_NE(refusal(text.substr(0, length)), "taken") << text.substr(0, length);
  }
}

TEST(ModelFile, IsReadFromItsPathWhichErrorsName) {
  const state::TemporaryFolder folder;
  const auto path = folder.path() / "m.json";
  std::ofstream(path) << file(layer(R"("flops": 7)"));
  EXPECT_EQ(read_model(path).forward_flops(), 7);
  std::ofstream(path) << "{}";
  try {
    read_model(path);
    FAIL();
  } catch (const core::UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("m.json"), std::string::npos);
  }
  std::filesystem::resize_file(path, (std::uintmax_t{64} << 20) + 1);
  try {
    read_model(path);
    FAIL();
  } catch (const core::UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("over 64 MiB"), std::string::npos) << error.what();
  }
  EXPECT_THROW(read_model(folder.path() / "none.json"), core::UsageError);
  EXPECT_THROW(read_model(folder.path()), core::UsageError);
}

}  // namespace
}  // namespace scalecom::plan
