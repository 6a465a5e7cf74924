#include "train/similarity.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "scalecom/state/memory_file.h"
#include "scalecom/state/memory_set.h"
#include "scalecom/state/safetensors.h"

namespace train {
namespace {

namespace state = scalecom::state;

constexpr std::int64_t kPiece = std::int64_t{1} << 16;

using Matrix = std::vector<std::vector<double>>;

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

/// Adds the products of each two learners' `name`.
void add_products(const std::vector<state::SafetensorsReader>& files, const std::string& name,
                  Matrix& products) {
  const std::int64_t elements = files.front().tensor(name).elements;
  std::vector<std::vector<float>> pieces(files.size());
  for (std::int64_t first = 0; first < elements; first += kPiece) {
    const auto size = static_cast<std::size_t>(std::min(kPiece, elements - first));
    for (std::size_t r = 0; r < files.size(); ++r) {
      pieces[r].resize(size);
      files[r].read(files[r].tensor(name), first, pieces[r]);
    }
    for (std::size_t a = 0; a < files.size(); ++a) {
      for (std::size_t b = 0; b <= a; ++b) products[a][b] += dot(pieces[a], pieces[b]);
    }
  }
}

}  // namespace

double Similarity::mean_distance() const {
  if (ranks < 2) return 0;
  double sum = 0;
  for (std::size_t a = 0; a < cosine.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) sum += 1 - cosine[a][b];
  }
  return sum / (0.5 * ranks * (ranks - 1));
}

Similarity measure_similarity(const std::filesystem::path& folder) {
  const state::CheckedSet set = state::check_set(folder);
  Similarity result{set.first.method, set.first.step, set.learners(), {}, {}, {}};
  const auto ranks = static_cast<std::size_t>(set.learners());
  // For its checks of all data.
  for (int learner = 0; learner < set.learners(); ++learner) {
    state::load(folder, learner, set.learners());
  }

  Matrix products(ranks, std::vector<double>(ranks));
  for (std::size_t member = 0; member < set.elements.size(); ++member) {
    std::vector<state::SafetensorsReader> files;
    for (const std::vector<int>& members : set.ranks) {
      files.emplace_back(folder / state::file_name(members[member], set.first.world));
    }
    for (const auto& [name, elements] : set.elements[member]) {
      Matrix own(ranks, std::vector<double>(ranks));
      add_products(files, name, own);
      Similarity::Tensor tensor{name, elements, {}};
      for (std::size_t a = 0; a < ranks; ++a) {
        tensor.norms.push_back(std::sqrt(own[a][a]));
        for (std::size_t b = 0; b <= a; ++b) products[a][b] += own[a][b];
      }
      result.tensors.push_back(std::move(tensor));
    }
  }
  result.cosine = Matrix(ranks, std::vector<double>(ranks));
  for (std::size_t a = 0; a < ranks; ++a) {
    result.norms.push_back(std::sqrt(products[a][a]));
    for (std::size_t b = 0; b <= a; ++b) {
      const double length = result.norms[a] * result.norms[b];
      result.cosine[a][b] = result.cosine[b][a] = length > 0 ? products[a][b] / length : 0;
    }
  }
  return result;
}

}  // namespace train
