// A client of raw sockets for tests: sends any bytes, reads answers as they come.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace quire {

struct RawAnswer {
  int status = 0;  // 0: the connection ended before an answer
  std::string head;
  std::string body;  // chunks joined
};

class RawClient {
 public:
  explicit RawClient(uint16_t port);
  explicit RawClient(const std::string& path);  // of a Unix-domain socket
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool send(std::string_view bytes);  // false: the server closed
  void end_output();                  // half-close
  void reset();                       // close with RST, as a killed client's host may
  // Reads one whole answer.
  RawAnswer answer();
  // Reads until what arrived since the last call holds `text`. False: the connection ended or nothing came in time.
  bool wait_for(std::string_view text);
  // True: the server closed within `limit`.
  bool closed_within(std::chrono::milliseconds limit);
  std::string received() const { return buffer_; }
  int fd() const { return fd_; }

 private:
  bool read_more(std::chrono::milliseconds limit);

  int fd_ = -1;
  std::string buffer_;
};

std::string post(std::string_view path, std::string_view body, std::string_view headers = "");
std::string get(std::string_view path, std::string_view headers = "");

}  // namespace quire
