#pragma once

#include "scalecom/kernels/lowrank.h"

namespace scalecom::kernels::reference {

bool accumulate_low_rank(const lowrank::Matrix& matrix, lowrank::Factors last, const float* q,
                         std::int64_t rank, std::int64_t begin, std::int64_t end, float* p);
void project_low_rank(const lowrank::Matrix& matrix, const float* p, std::int64_t rank,
                      std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last,
                      float* q, std::int64_t stride);
void expand_low_rank(const lowrank::Matrix& matrix, lowrank::Factors factors, std::int64_t rank,
                     std::int64_t begin, std::int64_t end);

}  // namespace scalecom::kernels::reference
