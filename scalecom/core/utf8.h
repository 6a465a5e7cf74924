#pragma once

#include <cstddef>
#include <string_view>

namespace scalecom::core {

/// The bytes of the UTF-8 character at `at`; 0 where there is none. Overlong forms, surrogates and
/// what lies beyond U+10FFFF are no characters.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// Whether all of it is UTF-8.
bool is_utf8(std::string_view text);

}  // namespace scalecom::core
