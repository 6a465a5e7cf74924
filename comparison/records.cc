#include "comparison/records.h"

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/text_file.h"
#include "train/runs/json.h"
#include "train/runs/run_folder.h"

namespace comparison {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;
using nlohmann::ordered_json;

fs::path failure_file(const PlannedRun& run) {
  return run.folder.string() + ".failed.json";
}

/// The first setting in which they differ: "epochs 3 instead of 1".
std::string difference(const ordered_json& present, const ordered_json& wanted) {
  for (const auto& [key, value] : wanted.items()) {
    const ordered_json other = present.value(key, ordered_json());
    if (other != value) return core::concat(key, " ", other.dump(), " instead of ", value.dump());
  }
  return "other settings";
}

}  // namespace

Records::Records(const Plan& plan) : plan_(plan) {
  const fs::path file = plan_.out / "settings.json";
  const ordered_json wanted = settings_of(plan_);
  const std::string out = plan_.out.string();
  std::error_code error;
  if (fs::is_regular_file(file, error)) {
    const ordered_json present = train::runs::read_json(file);
    if (present == wanted) return;
    throw core::UsageError(core::concat("[compare] ", out, " holds runs of other settings (",
                                        difference(present, wanted), "); choose another --out"));
  }
  if (fs::exists(plan_.out, error) && !fs::is_directory(plan_.out, error)) {
    throw core::UsageError(core::concat("[compare] ", out, " is a file; choose another --out"));
  }
  if (fs::is_directory(plan_.out, error) && !fs::is_empty(plan_.out, error)) {
    throw core::UsageError(core::concat("[compare] ", out,
                                        " is not empty, and holds no comparison; choose another "
                                        "--out"));
  }
  try {
    fs::create_directories(plan_.out / "runs");
    fs::create_directories(plan_.out / "measured");
    train::runs::write_json(file, wanted);
  } catch (const fs::filesystem_error& failure) {
    throw core::UsageError(core::concat("[compare] ", out, " cannot be written: ",
                                        failure.code().message(), "; choose another --out"));
  } catch (const core::IoError& failure) {
    throw core::UsageError(core::concat(failure.what(), "; choose another --out"));
  }
}

std::optional<ordered_json> Records::measured(const Entrant& entrant) const {
  const fs::path file = measured_file(plan_, entrant);
  if (!fs::exists(file)) return std::nullopt;
  ordered_json figures = train::runs::read_json(file);
  if (!figures.is_object() || figures.value("spec", ordered_json()) != entrant.spec) {
    throw core::UsageError(core::concat("[compare] ", file.string(), " is not of '", entrant.spec,
                                        "'; remove it, or choose another --out"));
  }
  return figures;
}

void Records::write_measured(const Entrant& entrant, const ordered_json& figures) {
  train::runs::write_json(measured_file(plan_, entrant), figures);
}

std::optional<ordered_json> Records::result(const PlannedRun& run) const {
  if (fs::exists(failure_file(run))) return train::runs::read_json(failure_file(run));
  if (!is_begun(run)) return std::nullopt;
  const auto folder = train::runs::RunFolder::open(run.folder);
  if (to_json(folder.config()) != to_json(run.config)) {
    throw core::UsageError(core::concat("[compare] ", run.folder.string(), " holds another run (",
                                        difference(to_json(folder.config()), to_json(run.config)),
                                        "); remove it, or choose another --out"));
  }
  if (!folder.is_complete()) return std::nullopt;
  return folder.result();
}

void Records::write_failure(const PlannedRun& run, const std::string& why) {
  train::runs::write_json(failure_file(run), {{"failure", why}});
}

bool Records::is_begun(const PlannedRun& run) const {
  return fs::exists(run.folder / "config.json");
}

std::int64_t Records::steps_done(const PlannedRun& run) const {
  if (result(run)) return run.config.steps;
  if (!is_begun(run)) return 0;
  const auto last = train::runs::RunFolder::open(run.folder).last_checkpoint();
  return last ? last->step : 0;
}

void Records::write_report(const ordered_json& report, const std::string& table) {
  train::runs::write_json(plan_.out / "compare.json", report);
  scalecom::state::write_text(plan_.out / "table.md", table);
}

}  // namespace comparison
