#include "train/similarity.h"

#include <algorithm>
#include <span>

#include "scalecom/state/memory_file.h"
#include "scalecom/state/memory_set.h"
#include "scalecom/state/safetensors.h"
#include "train/gram.h"

namespace train {
namespace {

namespace state = scalecom::state;

constexpr std::int64_t kPiece = std::int64_t{1} << 16;

/// Adds the products of each two learners' `name`.
void add_products(const std::vector<state::SafetensorsReader>& files, const std::string& name,
                  Gram& products) {
  const std::int64_t elements = files.front().tensor(name).elements;
  std::vector<float> pieces;
  for (std::int64_t first = 0; first < elements; first += kPiece) {
    const auto size = static_cast<std::size_t>(std::min(kPiece, elements - first));
    pieces.resize(size * files.size());
    for (std::size_t r = 0; r < files.size(); ++r) {
      files[r].read(files[r].tensor(name), first, std::span(pieces).subspan(r * size, size));
    }
    products.add(pieces);
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

  Gram products(ranks);
  for (std::size_t member = 0; member < set.elements.size(); ++member) {
    std::vector<state::SafetensorsReader> files;
    for (const std::vector<int>& members : set.ranks) {
      files.emplace_back(set.path(folder, members[member]));
    }
    for (const auto& [name, elements] : set.elements[member]) {
      Gram own(ranks);
      add_products(files, name, own);
      Similarity::Tensor tensor{name, elements, {}};
      for (std::size_t a = 0; a < ranks; ++a) tensor.norms.push_back(own.norm(a));
      products += own;
      result.tensors.push_back(std::move(tensor));
    }
  }
  result.cosine.assign(ranks, std::vector<double>(ranks));
  for (std::size_t a = 0; a < ranks; ++a) {
    result.norms.push_back(products.norm(a));
    for (std::size_t b = 0; b < ranks; ++b) result.cosine[a][b] = products.cosine(a, b);
  }
  return result;
}

}  // namespace train
