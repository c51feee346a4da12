// How the libraries report failure: Status, or Result<T> when there is a value to return.
//
// Whatever a file, flag, client or memory size can cause travels through these; a message says what went wrong,
// where, and what to do. Bugs use QUIRE_CHECK (base/check.h). Both types are values, movable across threads.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace quire {

enum class StatusCode {
  kOk,
  kInvalidArgument,    // a flag, request or template asks for something that cannot be done
  kNotFound,           // a file, name or package that does not exist
  kCorrupt,            // a file contradicts its own format
  kUnsupported,        // well-formed, but a type, architecture or construct that quire does not know
  kOutOfRange,         // too long for the context, too large for a limit
  kResourceExhausted,  // memory, disk space, file descriptors
  kIo,                 // the operating system refused
  kCancelled,
  kDeadlineExceeded,  // the request's own time ran out
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status invalid_argument(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }
inline Status not_found(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
inline Status corrupt(std::string message) { return {StatusCode::kCorrupt, std::move(message)}; }
inline Status unsupported(std::string message) { return {StatusCode::kUnsupported, std::move(message)}; }
inline Status out_of_range(std::string message) { return {StatusCode::kOutOfRange, std::move(message)}; }
inline Status resource_exhausted(std::string message) { return {StatusCode::kResourceExhausted, std::move(message)}; }
inline Status io_error(std::string message) { return {StatusCode::kIo, std::move(message)}; }
inline Status cancelled(std::string message) { return {StatusCode::kCancelled, std::move(message)}; }
inline Status deadline_exceeded(std::string message) { return {StatusCode::kDeadlineExceeded, std::move(message)}; }

// Holds either a value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit, so `return value;` works
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit, so `return corrupt(...)` works

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace quire

#define QUIRE_CONCAT_INNER(a, b) a##b
#define QUIRE_CONCAT(a, b) QUIRE_CONCAT_INNER(a, b)

// Returns the Status of `expression` from the calling function unless it is ok.
#define QUIRE_RETURN_IF_ERROR(expression)          \
  do {                                             \
    ::quire::Status quire_status_ = (expression);  \
    if (!quire_status_.ok()) return quire_status_; \
  } while (false)

// Declares or assigns `target` from a Result, or returns its Status: QUIRE_ASSIGN_OR_RETURN(auto file, open(path));
#define QUIRE_ASSIGN_OR_RETURN(target, expression) \
  QUIRE_ASSIGN_OR_RETURN_INNER(QUIRE_CONCAT(quire_result_, __LINE__), target, expression)
#define QUIRE_ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return result.status();                      \
  target = std::move(*result)
