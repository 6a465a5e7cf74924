#include <cstdlib>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/cpu/cpu.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/kernels/reference/reference.h"

namespace scalecom::kernels {
namespace {

std::vector<const Table*> find_tables() {
  std::vector<const Table*> found{&reference::table()};
  for (const Table* vector : cpu::available()) found.push_back(vector);
  return found;
}

const Table& choose() {
  if (const char* isa = std::getenv("SCALECOM_ISA")) return table(isa);
  return *tables().back();
}

}  // namespace

std::span<const Table* const> tables() {
  static const std::vector<const Table*> found = find_tables();
  return found;
}

const Table& table(const std::string& isa) {
  std::vector<std::string> names;
  for (const Table* candidate : tables()) {
    if (isa == candidate->isa) return *candidate;
    names.emplace_back(candidate->isa);
  }
  throw core::UsageError(core::concat("[kernels] SCALECOM_ISA is '", isa,
                                      "'; this build and processor have: ", core::join(names)));
}

const Table& table() {
  static const Table& chosen = choose();
  return chosen;
}

}  // namespace scalecom::kernels
