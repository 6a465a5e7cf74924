#include <map>
#include <string>
#include <vector>

#include "comparison/operations/methods.h"
#include "scalecom/core/hash.h"
#include "scalecom/kernels/lowrank.h"
#include "scalecom/methods/powersgd/options.h"
#include "scalecom/methods/powersgd/shape.h"

namespace comparison::operations {
namespace {

namespace core = scalecom::core;
namespace layout = scalecom::layout;
namespace powersgd = scalecom::methods::powersgd;

using Vector = std::vector<Number>;

/// One matrix M ~ P Q^T, from step to step; `q` has a row for every factor, and so has `p`.
class Matrix {
 public:
  Matrix(std::size_t rows, std::size_t columns, std::vector<Vector> start)
      : rows_(rows), columns_(columns), q_(std::move(start)) {}

  /// The gradient becomes P Q^T.
  void step(std::span<Number> gradient) {
    memory_.resize(gradient.size());
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      memory_[i] = memory_[i] + gradient[i];
      static_cast<void>(is_finite(memory_[i]));
    }
    orthonormalise(q_);
    std::vector<Vector> p(q_.size(), Vector(rows_));
    for_each([&](std::size_t i, std::size_t j, std::size_t k) {
      p[k][i] = fma(memory_[i * columns_ + j], q_[k][j], p[k][i]);
    });
    orthonormalise(p);
    const Number factor = 1;
    for (Vector& one : q_) one.assign(columns_, 0);
    for_each([&](std::size_t i, std::size_t j, std::size_t k) {
      q_[k][j] = fma(memory_[i * columns_ + j], p[k][i], q_[k][j]);
    });
    for (Vector& one : q_) {
      for (Number& value : one) value = value * factor;
    }
    std::fill(gradient.begin(), gradient.end(), Number(0));
    for_each([&](std::size_t i, std::size_t j, std::size_t k) {
      Number& mean = gradient[i * columns_ + j];
      mean = fma(p[k][i], q_[k][j], mean);
    });
    for (std::size_t i = 0; i < gradient.size(); ++i) memory_[i] = memory_[i] - gradient[i];
  }

 private:
  template <typename Body>
  void for_each(const Body& body) const {
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j < columns_; ++j) {
        for (std::size_t k = 0; k < q_.size(); ++k) body(i, j, k);
      }
    }
  }

  static Number along(const Vector& a, const Vector& b) {
    Number sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum = fma(a[i], b[i], sum);
    return sum;
  }

  /// Gram and Schmidt's, each vector cleaned twice, as rounding leaves some.
  static void orthonormalise(std::vector<Vector>& vectors) {
    for (std::size_t k = 0; k < vectors.size(); ++k) {
      for (std::size_t other = 0; other < 2 * k; ++other) {
        const Vector& clean = vectors[other % k];
        const Number share = along(vectors[k], clean);
        for (std::size_t i = 0; i < clean.size(); ++i) {
          vectors[k][i] = fma(-share.value(), clean[i], vectors[k][i]);
        }
      }
      const Number length = std::sqrt(along(vectors[k], vectors[k]).value());
      for (Number& value : vectors[k]) value = value / length;
    }
  }

  std::size_t rows_;
  std::size_t columns_;
  std::vector<Vector> q_;
  Vector memory_;
};

class PowerSgd final : public Statement {
 public:
  explicit PowerSgd(const powersgd::Options& options) : options_(options) {}

  void step(std::span<Number> gradient, const layout::Layout& bucket,
            std::int64_t /*step*/) override {
    const powersgd::Shape shape(bucket, options_.rank);
    for (const auto& part : shape.dense_parts) {
      mean_of_dense(gradient.subspan(static_cast<std::size_t>(part.offset),
                                     static_cast<std::size_t>(part.length)));
    }
    for (const auto& matrix : shape.matrices) {
      const auto rows = static_cast<std::size_t>(matrix.rows);
      const auto columns = static_cast<std::size_t>(matrix.columns);
      auto found = matrices_.find(matrix.name);
      if (found == matrices_.end()) {
        found = matrices_.try_emplace(matrix.name, rows, columns, start_of(matrix)).first;
      }
      found->second.step(gradient.subspan(static_cast<std::size_t>(matrix.offset), rows * columns));
    }
  }

 private:
  /// What the method begins with: drawn once, and not counted.
  std::vector<Vector> start_of(const powersgd::Shape::Matrix& matrix) const {
    std::vector<float> q(static_cast<std::size_t>(options_.rank * matrix.columns));
    const auto seed = static_cast<std::uint64_t>(options_.seed);
    scalecom::kernels::lowrank::draw_q(core::combine(seed, core::hash(matrix.name)), options_.rank,
                                       matrix.columns, q.data());
    std::vector<Vector> start;
    for (auto at = q.begin(); at != q.end(); at += matrix.columns) {
      start.emplace_back(at, at + matrix.columns);
    }
    return start;
  }

  powersgd::Options options_;
  std::map<std::string, Matrix> matrices_;
};

}  // namespace

std::unique_ptr<Statement> state_powersgd(const core::OptionString& options) {
  powersgd::Options read;
  read.read(options);
  // Drawing in every step would be part of the work, and is not stated.
  if (read.warm_start == powersgd::Options::kOff) return nullptr;
  return std::make_unique<PowerSgd>(read);
}

}  // namespace comparison::operations
