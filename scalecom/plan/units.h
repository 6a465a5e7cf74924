#pragma once

#include <string>

namespace scalecom::plan {

/// Quantities as people write them, in SI units. UsageError, naming `what` and the forms that are
/// read, for anything else, and for a figure that is not over 0 or not finite.
///
/// Bytes a second: "10Gbps", "10Gb/s", "10Gbit/s", "1.25GB/s", "100 Mbit/s". A small b is a bit.
double parse_bandwidth(const std::string& text, const std::string& what);
/// Seconds: "80ms", "5us", "0.5s". Zero is allowed.
double parse_seconds(const std::string& text, const std::string& what);
/// Bytes: "25MB", "1MiB", "64kB", "512B".
double parse_bytes(const std::string& text, const std::string& what);

/// "1.25 GB/s"
std::string byte_rate_text(double bytes_per_second);
/// "1.25 GB/s (10 Gbit/s)", for people who count in bits.
std::string bandwidth_text(double bytes_per_second);

}  // namespace scalecom::plan
