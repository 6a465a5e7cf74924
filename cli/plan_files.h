#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "scalecom/plan/calibrate.h"
#include "scalecom/plan/kernels.h"
#include "scalecom/plan/model.h"

/// What `scalecom plan` reads beside its options. Whatever a file lacks is a core::UsageError that
/// names the file and the field.
namespace cli {

/// The name of a built-in model, or a file.
scalecom::plan::Model plan_model(const std::string& name);

/// The name of stored kernel times, or the --json of `scalecom bench step` or `bench reduce`.
scalecom::plan::Kernels plan_kernels(const std::string& name);

/// A link as `scalecom plan --measure --json` writes it, and back.
nlohmann::ordered_json to_json(const scalecom::plan::Link& link);
scalecom::plan::Link plan_link(const std::string& path);

}  // namespace cli
