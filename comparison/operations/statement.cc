#include "comparison/operations/statement.h"

#include <array>
#include <vector>

#include "comparison/operations/methods.h"
#include "scalecom/layout/rates.h"
#include "scalecom/methods/method.h"

namespace comparison::operations {
namespace {

namespace core = scalecom::core;

struct Entry {
  const char* name;
  std::unique_ptr<Statement> (*make)(const core::OptionString& options);
};

// A new statement is one line here.
constexpr std::array kEntries{
    Entry{"adacomp", state_adacomp},   Entry{"dense", state_dense},
    Entry{"dgc", state_dgc},           Entry{"gtopk", state_gtopk},
    Entry{"half", state_half},         Entry{"powersgd", state_powersgd},
    Entry{"scalecom", state_scalecom}, Entry{"sketched_sgd", state_sketched_sgd},
    Entry{"topk", state_topk},         Entry{"weighted", state_weighted}};

}  // namespace

std::int64_t& done() {
  thread_local std::int64_t count = 0;
  return count;
}

std::unique_ptr<Statement> make_statement(const std::string& spec) {
  const core::OptionString options =
      core::OptionString::parse(scalecom::methods::make(spec)->spec());
  for (const Entry& entry : kEntries) {
    if (options.name == entry.name) return entry.make(options);
  }
  return nullptr;
}

std::optional<double> count(const std::string& spec,
                            std::span<const scalecom::layout::Tensor> tensors,
                            std::span<const float> gradient) {
  const auto statement = make_statement(spec);
  if (!statement) return std::nullopt;
  const auto layout =
      scalecom::layout::make_layout(tensors, scalecom::methods::make(spec)->rate_policy());
  std::int64_t before = 0;
  for (int step = 0; step < 2; ++step) {
    std::vector<Number> numbers(gradient.begin(), gradient.end());
    before = done();
    statement->step(numbers, layout, step);
  }
  return static_cast<double>(done() - before) / static_cast<double>(gradient.size());
}

}  // namespace comparison::operations
