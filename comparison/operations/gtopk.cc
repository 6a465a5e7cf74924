#include "comparison/operations/methods.h"

namespace comparison::operations {

// They differ in what becomes of the entries on their way, and a rank that is alone sends them to
// nobody.
std::unique_ptr<Statement> state_gtopk(const scalecom::core::OptionString& options) {
  return state_topk(options);
}

}  // namespace comparison::operations
