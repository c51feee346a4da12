// Framing of server-sent events (WHATWG HTML, "Server-sent events"). Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace quire {

inline constexpr std::string_view kSseComment = ": waiting\n\n";  // clients ignore it; proxies see life
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";  // how OpenAI's streams end

// Appends an event whose data is `json`, which holds no line break (JsonWriter writes none).
inline void append_sse(std::string_view json, std::string* out) { out->append("data: ").append(json).append("\n\n"); }

}  // namespace quire
