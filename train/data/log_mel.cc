#include "train/data/log_mel.h"

#include <cmath>
#include <complex>
#include <numbers>
#include <utility>

namespace train::data {
namespace {

constexpr double kFloor = 1e-6;  // energy that silence counts as; full scale is 1

double to_mel(double frequency) {
  return 2595 * std::log10(1 + frequency / 700);
}
double from_mel(double mel) {
  return 700 * (std::pow(10, mel / 2595) - 1);
}

/// The discrete Fourier transform, in place; the size is a power of two.
void transform(std::vector<std::complex<double>>& values) {
  const std::size_t size = values.size();
  for (std::size_t i = 1, j = 0; i < size; ++i) {
    std::size_t bit = size >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(values[i], values[j]);
  }
  for (std::size_t half = 1; half < size; half *= 2) {
    const std::complex<double> turn =
        std::polar(1.0, -std::numbers::pi / static_cast<double>(half));
    for (std::size_t begin = 0; begin < size; begin += 2 * half) {
      std::complex<double> factor = 1;
      for (std::size_t i = begin; i < begin + half; ++i) {
        const std::complex<double> odd = factor * values[i + half];
        values[i + half] = values[i] - odd;
        values[i] += odd;
        factor *= turn;
      }
    }
  }
}

}  // namespace

LogMel::LogMel(const Options& options) : options_(options) {
  for (int i = 0; i < options.window; ++i) {
    const double angle = 2 * std::numbers::pi * (i + 0.5) / options.window;
    window_.push_back(static_cast<float>(0.5 - 0.5 * std::cos(angle)));
  }
  // Triangles, each from its neighbour's peak to its other neighbour's.
  const double highest = to_mel(options.rate / 2.0);
  const auto peak = [&](int band) { return from_mel(highest * (band + 1) / (options.bands + 1)); };
  for (int b = 0; b < options.bands; ++b) {
    Band band;
    for (int f = 0; f <= options.transform / 2; ++f) {
      const double frequency = static_cast<double>(f) * options.rate / options.transform;
      const double rise = (frequency - peak(b - 1)) / (peak(b) - peak(b - 1));
      const double fall = (peak(b + 1) - frequency) / (peak(b + 1) - peak(b));
      const double weight = std::min(rise, fall);
      if (weight <= 0) continue;
      if (band.weights.empty()) band.first = f;
      band.weights.push_back(static_cast<float>(weight));
    }
    bands_.push_back(std::move(band));
  }
}

std::int64_t LogMel::frames(std::int64_t samples) const {
  return samples < options_.window ? 1 : 1 + (samples - options_.window) / options_.hop;
}

float LogMel::silence() {
  return static_cast<float>(std::log(kFloor));
}

std::vector<float> LogMel::operator()(std::span<const std::int16_t> samples) const {
  const std::int64_t count = frames(static_cast<std::int64_t>(samples.size()));
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(count * options_.bands));
  std::vector<std::complex<double>> values;
  for (std::int64_t frame = 0; frame < count; ++frame) {
    const auto begin = static_cast<std::size_t>(frame * options_.hop);
    values.assign(static_cast<std::size_t>(options_.transform), 0);
    for (std::size_t i = 0; i < window_.size() && begin + i < samples.size(); ++i) {
      values[i] = window_[i] * (samples[begin + i] / 32768.0);
    }
    transform(values);
    for (const Band& band : bands_) {
      double energy = 0;
      for (std::size_t i = 0; i < band.weights.size(); ++i) {
        energy += band.weights[i] * std::norm(values[static_cast<std::size_t>(band.first) + i]);
      }
      out.push_back(static_cast<float>(std::log(energy + kFloor)));
    }
  }
  return out;
}

}  // namespace train::data
