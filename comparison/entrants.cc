#include "comparison/entrants.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "scalecom/core/error.h"
#include "scalecom/core/options.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/method.h"

namespace comparison {
namespace {

namespace core = scalecom::core;
namespace methods = scalecom::methods;

constexpr const char* kAll = "all";

struct Usual {
  const char* name;
  const char* spec;
};

// How a method is used where nothing else is said; one that is not listed, as it comes.
constexpr std::array kUsual{
    Usual{"scalecom", "scalecom,rate=100,beta=0.1"},
    Usual{"topk", "topk,rate=100"},
    Usual{"gtopk", "gtopk,rate=100"},
    Usual{"dgc", "dgc,rate=1000"},
    Usual{"powersgd", "powersgd,rank=4"},
};

// A method that chooses without looking: what the choice of the others is worth.
constexpr const char* kControlOf = "scalecom";
constexpr const char* kControl = "scalecom,select=random";

std::string usual_spec(const std::string& name) {
  for (const Usual& usual : kUsual) {
    if (name == usual.name) return usual.spec;
  }
  return name;
}

/// A method and its options, as they stand in a list.
Entrant entrant_of(const std::string& text) {
  const core::OptionString options = core::OptionString::parse(text);
  return {text, options.settings.empty() ? usual_spec(options.name) : text};
}

std::vector<std::string> every_method() {
  std::vector<std::string> all;
  for (const std::string& name : methods::names()) {
    all.push_back(name);
    if (name == kControlOf) all.emplace_back(kControl);
  }
  return all;
}

std::vector<std::string> texts_of(const std::string& list) {
  std::vector<std::string> texts;
  for (const std::string& piece : core::split(list, ',')) {
    if (piece == kAll) {
      for (std::string& text : every_method()) texts.push_back(std::move(text));
    } else if (piece.find('=') != std::string::npos && !texts.empty()) {
      texts.back() += "," + piece;
    } else {
      texts.push_back(piece);
    }
  }
  return texts;
}

bool has_option(const std::string& name, const std::string& key) {
  return methods::describe(name).find(key + "=") != std::string::npos;
}

}  // namespace

std::vector<Entrant> parse_methods(const std::string& list) {
  if (list.empty()) {
    throw core::UsageError(core::concat("[methods] --methods is empty; give all, or some of ",
                                        core::join(methods::names())));
  }
  std::vector<Entrant> entrants;
  for (const std::string& text : texts_of(list)) {
    Entrant entrant = entrant_of(text);
    methods::make(entrant.spec);
    for (const Entrant& other : entrants) {
      if (other.label != entrant.label) continue;
      throw core::UsageError(
          core::concat("[methods] '", text, "' stands twice among --methods: give it once"));
    }
    entrants.push_back(std::move(entrant));
  }
  return entrants;
}

std::string with_warmup(const std::string& spec, double share, std::int64_t steps) {
  const core::OptionString options = core::OptionString::parse(spec);
  const bool given = std::any_of(options.settings.begin(), options.settings.end(),
                                 [](const auto& setting) { return setting.first == "warmup"; });
  if (given || !has_option(options.name, "warmup")) return spec;
  return core::concat(spec, ",warmup=", std::llround(share * static_cast<double>(steps)));
}

}  // namespace comparison
