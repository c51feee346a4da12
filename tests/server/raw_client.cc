#include "server/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>

namespace quire {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

std::string field(const std::string& head, const std::string& name) {
  size_t at = 0;
  while ((at = head.find("\r\n", at)) != std::string::npos) {
    at += 2;
    if (strncasecmp(head.c_str() + at, name.c_str(), name.size()) != 0) continue;
    const size_t end = head.find("\r\n", at);
    return head.substr(at + name.size(), end - at - name.size());
  }
  return {};
}

}  // namespace

RawClient::RawClient(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

RawClient::RawClient(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

RawClient::~RawClient() {
  if (fd_ >= 0) ::close(fd_);
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void RawClient::end_output() { ::shutdown(fd_, SHUT_WR); }

void RawClient::reset() {
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(fd_);
  fd_ = -1;
}

bool RawClient::read_more(std::chrono::milliseconds limit) {
  pollfd poll_fd{fd_, POLLIN, 0};
  if (::poll(&poll_fd, 1, static_cast<int>(limit.count())) <= 0) return false;
  char bytes[65536];
  const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
  if (count <= 0) return false;
  buffer_.append(bytes, static_cast<size_t>(count));
  return true;
}

bool RawClient::wait_for(std::string_view text) {
  size_t at;
  while ((at = buffer_.find(text)) == std::string::npos) {
    if (!read_more(kPatience)) return false;
  }
  buffer_.erase(0, at + text.size());
  return true;
}

bool RawClient::closed_within(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd poll_fd{fd_, POLLIN, 0};
    if (::poll(&poll_fd, 1, static_cast<int>(left.count())) <= 0) return false;
    if (!read_more(left)) return true;
  }
}

RawAnswer RawClient::answer() {
  RawAnswer answer;
  size_t end;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!read_more(kPatience)) return answer;
  }
  answer.head = buffer_.substr(0, end + 2);
  buffer_.erase(0, end + 4);
  answer.status = std::atoi(answer.head.c_str() + std::string_view("HTTP/1.1 ").size());
  if (field(answer.head, "Transfer-Encoding: ") == "chunked") {
    while (true) {
      size_t line;
      while ((line = buffer_.find("\r\n")) == std::string::npos) {
        if (!read_more(kPatience)) return answer;
      }
      const size_t size = std::strtoull(buffer_.c_str(), nullptr, 16);
      while (buffer_.size() < line + 2 + size + 2) {
        if (!read_more(kPatience)) return answer;
      }
      answer.body += buffer_.substr(line + 2, size);
      buffer_.erase(0, line + 2 + size + 2);
      if (size == 0) return answer;
    }
  }
  const std::string length = field(answer.head, "Content-Length: ");
  const bool until_close = length.empty() && answer.status != 204 && answer.status != 100;
  const size_t size = length.empty() ? 0 : std::strtoull(length.c_str(), nullptr, 10);
  while (until_close || buffer_.size() < size) {
    if (!read_more(kPatience)) break;
  }
  answer.body = until_close ? buffer_ : buffer_.substr(0, size);
  buffer_.erase(0, answer.body.size());
  return answer;
}

std::string post(std::string_view path, std::string_view body, std::string_view headers) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
         std::string(headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::string get(std::string_view path, std::string_view headers) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(headers) + "\r\n";
}

}  // namespace quire
