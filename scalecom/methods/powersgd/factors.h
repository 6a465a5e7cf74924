#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scalecom/core/array.h"
#include "scalecom/kernels/lowrank.h"
#include "scalecom/methods/memory_store.h"
#include "scalecom/methods/powersgd/options.h"
#include "scalecom/methods/powersgd/shape.h"

namespace scalecom::methods::powersgd {

/// What PowerSGD remembers of every matrix, by the tensor's name: the memory, the Q that the next
/// step begins with, and the factors of the last step, which the memory still holds. Those are 0
/// where nothing was sent. A copy of it shares the arrays, and knows no others that are made later.
class Factors {
 public:
  /// As MemoryStore::use.
  void use(const core::Stream& stream);
  const core::Stream& stream() const { return errors_.stream(); }

  /// Makes room for a matrix, with a Q drawn from the seed. UsageError where the memory that was
  /// restored is that of another model, and for a name that list() gives to another one's Q.
  void prepare(const Shape::Matrix& matrix, const Options& options);
  /// UsageError where the memory of a tensor has another length.
  void check(const std::string& name, std::int64_t length) { errors_.find(name, length); }
  /// As MemoryStore::take_over.
  void take_over(Factors& ahead);
  /// A matrix that is prepared, as a job without the factors of this step. Its arrays stay where
  /// they are until the matrix travels dense, or Q is forgotten.
  kernels::lowrank::Job job_of(const Shape::Matrix& matrix);
  /// The matrix takes part in `step`.
  void begin(const Shape::Matrix& matrix, std::int64_t step) { last_.at(matrix.name)->step = step; }
  /// After captured steps were replayed: `steps` are done.
  void replayed(std::int64_t steps);

  /// The memory of a tensor that travels dense now, settled; null where there is none.
  float* settled(const std::string& name, std::int64_t length);
  /// It went out as a whole. It can come back until it is forgotten.
  void set_aside(const std::string& name);

  void forget_aside() { errors_.forget_aside(); }
  /// The memories as if `step` had sent nothing.
  void undo(std::int64_t step);
  /// Takes off what was sent: it can no longer be undone.
  void settle();
  /// Every Q is drawn anew when it is needed.
  void forget_q();
  void scale(float factor);

  /// Settled copies: NAME, and `with_q` NAME/q for its Q. They stay until the next call.
  std::vector<NamedMemory> list(bool with_q) const;
  void replace(Memories&& memories);

 private:
  struct Last {
    std::int64_t rank = 0;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t step = -1;
    core::Array<float> p;
    core::Array<float> q;
  };

  kernels::lowrank::Job job_of(const std::string& name, Last& last);
  void draw(const Shape::Matrix& matrix, const Options& options);
  core::AlignedArray<float> adopted(const std::string& name, const Last& last) const;

  MemoryStore errors_;
  mutable MemoryStore starts_;  // Q
  std::map<std::string, std::shared_ptr<Last>> last_;
  mutable std::shared_ptr<Memories> copies_;  // of the last list()
};

}  // namespace scalecom::methods::powersgd
