#include "train/similarity/saved.h"

#include <algorithm>
#include <span>

#include "scalecom/state/checksum.h"
#include "scalecom/state/memory_set.h"
#include "train/similarity/gram.h"

namespace train::similarity {
namespace {

namespace state = scalecom::state;

/// The products of each two learners' `name`, whose data are checked on the way.
Gram products_of(const std::vector<state::MemoryFile>& files, const std::string& name,
                 std::int64_t elements) {
  constexpr std::int64_t kPiece = state::Checksum::kBlock;
  Gram products(files.size());
  std::vector<state::Checksum> sums(files.size());
  std::vector<float> pieces;
  for (std::int64_t first = 0; first < elements; first += kPiece) {
    const auto size = static_cast<std::size_t>(std::min(kPiece, elements - first));
    pieces.resize(size * files.size());
    for (std::size_t r = 0; r < files.size(); ++r) {
      const auto piece = std::span(pieces).subspan(r * size, size);
      files[r].reader.read(files[r].reader.tensor(name), first, piece);
      sums[r].add(piece);
    }
    products.add(pieces);
  }
  for (std::size_t r = 0; r < files.size(); ++r) files[r].check_sum(name, sums[r]);
  return products;
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

Similarity measure(const std::filesystem::path& folder) {
  const state::CheckedSet set = state::check_set(folder);
  Similarity result{set.first.method, set.first.step, set.learners(), {}, {}, {}};
  const auto ranks = static_cast<std::size_t>(set.learners());
  if (set.elements.size() > 1) set.check_parts(folder);

  Gram products(ranks);
  for (std::size_t member = 0; member < set.elements.size(); ++member) {
    std::vector<state::MemoryFile> files;
    for (int learner = 0; learner < set.learners(); ++learner) {
      files.push_back(set.open(folder, learner, member));
    }
    for (const auto& [name, elements] : set.elements[member]) {
      const Gram own = products_of(files, name, elements);
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

}  // namespace train::similarity
