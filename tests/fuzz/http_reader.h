// HTTP/1.1 as RFC 9112 has it, read without forbearance: what a client asked for, and whether what a server answered is
// well-formed. Written from the RFC and apart from the server, which is held against it.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire {

// Walks over bytes; fails once and for all.
class HttpCursor {
 public:
  explicit HttpCursor(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  bool failed() const { return failed_; }
  void fail() { failed_ = true; }
  // Up to CR LF, which is passed over. Neither may stand alone.
  std::string_view line() {
    const size_t end = rest_.find("\r\n");
    if (end == std::string_view::npos) return failed_ = true, std::string_view();
    const std::string_view text = rest_.substr(0, end);
    if (text.find('\r') != std::string_view::npos || text.find('\n') != std::string_view::npos) failed_ = true;
    rest_.remove_prefix(end + 2);
    return text;
  }
  std::string_view take(size_t bytes) {
    if (bytes > rest_.size()) return failed_ = true, std::string_view();
    const std::string_view text = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return text;
  }
  std::string_view take_rest() { return take(rest_.size()); }
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

struct HttpHead {
  std::string first_line;
  std::vector<std::pair<std::string, std::string>> fields;  // names in lower case

  std::vector<std::string> all(std::string_view name) const {
    std::vector<std::string> values;
    for (const auto& [key, value] : fields) {
      if (key == name) values.push_back(value);
    }
    return values;
  }
};

inline std::string http_lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

inline bool is_http_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
  });
}

inline std::string_view http_trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Start line and fields. A line that is folded goes on with the value before it, which RFC 9112, 5.2 lets a server do.
inline HttpHead read_http_head(HttpCursor& cursor) {
  HttpHead head;
  head.first_line = cursor.line();
  while (!cursor.failed()) {
    const std::string_view line = cursor.line();
    if (line.empty()) break;
    if (line.front() == ' ' || line.front() == '\t') {
      if (head.fields.empty()) {
        cursor.fail();
      } else {
        std::string& value = head.fields.back().second;
        value = http_trimmed(value + " " + std::string(http_trimmed(line)));
      }
      continue;
    }
    const size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == std::string_view::npos || !is_http_token(name)) {
      cursor.fail();
    } else {
      head.fields.emplace_back(http_lower(std::string(name)), http_trimmed(line.substr(colon + 1)));
    }
  }
  return head;
}

// A number in `base` of digits alone that fits 62 bits.
inline std::optional<uint64_t> http_number(std::string_view text, int base) {
  const auto is_digit = [base](char c) {
    return base == 10 ? c >= '0' && c <= '9' : std::isxdigit(static_cast<unsigned char>(c)) != 0;
  };
  while (text.size() > 1 && text.front() == '0') text.remove_prefix(1);
  if (text.empty() || text.size() > 15 || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  return std::strtoull(std::string(text).c_str(), nullptr, base);
}

// The data of a chunked body, trailers passed over.
inline std::string read_http_chunks(HttpCursor& cursor) {
  std::string body;
  while (!cursor.failed()) {
    std::string_view line = cursor.line();
    line = http_trimmed(line.substr(0, line.find(';')));
    const auto size = http_number(line, 16);
    if (!size) cursor.fail();
    if (cursor.failed()) break;
    if (*size == 0) {
      while (!cursor.failed() && !cursor.line().empty()) {
      }
      break;
    }
    body += cursor.take(*size);
    if (!cursor.skip("\r\n")) cursor.fail();
  }
  return body;
}

// The requests in what a client sent, up to the first that is none: that one counts, because a server may answer it with an
// error, and nothing behind it does, because nobody can say where it ends.
class RequestReader {
 public:
  explicit RequestReader(std::string_view bytes) {
    HttpCursor cursor(bytes);
    while (true) {
      while (cursor.skip("\r") || cursor.skip("\n")) {
      }
      if (cursor.done()) break;
      methods_.emplace_back();
      const HttpHead head = read_http_head(cursor);
      methods_.back() = head.first_line.substr(0, head.first_line.find(' '));
      if (cursor.failed() || !read_body(cursor, head) || cursor.failed()) break;
    }
  }

  const std::vector<std::string>& methods() const { return methods_; }  // empty: no line was read

 private:
  // False: where the request ends cannot be said (RFC 9112, 6.3).
  static bool read_body(HttpCursor& cursor, const HttpHead& head) {
    const auto codings = head.all("transfer-encoding"), lengths = head.all("content-length");
    if (!codings.empty()) {
      if (codings.size() != 1 || http_lower(codings[0]) != "chunked" || !lengths.empty()) return false;
      read_http_chunks(cursor);
      return true;
    }
    if (lengths.empty()) return true;
    const auto length = http_number(lengths[0], 10);
    const bool alike =
        std::all_of(lengths.begin(), lengths.end(), [&](const auto& other) { return other == lengths[0]; });
    if (!length || !alike) return false;
    cursor.take(*length);
    return true;
  }

  std::vector<std::string> methods_;
};

// The answers to requests of these methods, in order.
class AnswerReader {
 public:
  AnswerReader(std::string_view bytes, const std::vector<std::string>& methods) {
    HttpCursor cursor(bytes);
    while (!cursor.done() && error_.empty()) {
      const HttpHead head = read_http_head(cursor);
      const int status = status_of(head.first_line);
      if (cursor.failed() || status == 0) {
        error_ = "no head: " + head.first_line;
      } else if (status >= 200) {
        const bool to_head = count_ < methods.size() && methods[count_] == "HEAD";
        ++count_;
        read_body(cursor, head, status, to_head);
      }
    }
  }

  size_t count() const { return count_; }
  const std::string& error() const { return error_; }  // empty: none

 private:
  static int status_of(std::string_view line) {
    if (!line.starts_with("HTTP/1.1 ") || line.size() < 13 || line[12] != ' ') return 0;
    const auto status = http_number(line.substr(9, 3), 10);
    return status && *status >= 100 && *status < 600 ? static_cast<int>(*status) : 0;
  }

  void read_body(HttpCursor& cursor, const HttpHead& head, int status, bool to_head) {
    const auto codings = head.all("transfer-encoding"), lengths = head.all("content-length");
    const auto connection = head.all("connection");
    const bool closes = connection.size() == 1 && connection[0] == "close";
    if (connection.size() != 1) error_ = "not said whether the connection goes on";
    if (codings.size() + lengths.size() > 1) error_ = "two lengths";
    if (to_head || status == 204) {
      // An error that ends the connection may have its text all the same: no answer can be behind it.
      if (closes) cursor.take_rest();
    } else if (!codings.empty()) {
      if (codings[0] != "chunked") error_ = "an unknown coding";
      read_http_chunks(cursor);
    } else if (!lengths.empty()) {
      const auto length = http_number(lengths[0], 10);
      if (!length) {
        error_ = "no length";
      } else {
        cursor.take(*length);
      }
    } else if (closes) {
      cursor.take_rest();
    } else {
      error_ = "an answer without an end";
    }
    if (cursor.failed()) error_ = "a body that is cut off";
    if (closes && !cursor.done()) error_ = "bytes behind the last answer";
  }

  size_t count_ = 0;
  std::string error_;
};

}  // namespace quire
