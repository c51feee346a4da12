// The server over the fake engine, as a program: for tests in other languages and for measuring the server alone.
//
// usage: quire_fake_server PORT [STEP_US]
#include <cstdio>
#include <cstdlib>

#include "server/fake_engine.h"
#include "server/server.h"

int main(int argc, char** argv) {
  quire::ServerOptions options;
  options.address.port = static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0);
  options.model_names = {"fake"};
  options.log_file = "none";
  quire::FakeEngine engine({.step_time = std::chrono::microseconds(argc > 2 ? std::atoi(argv[2]) : 0)});
  const auto server = quire::Server::bind(options);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().message().c_str());
    return 2;
  }
  std::printf("%s\n", (*server)->url().c_str());
  std::fflush(stdout);
  const quire::Status status = (*server)->run(engine);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
