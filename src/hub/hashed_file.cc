#include "hub/hashed_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/mapped_file.h"

namespace quire {
namespace {

using Bytes = std::array<unsigned char, EVP_MAX_MD_SIZE>;

std::string hexadecimal(const Bytes& bytes, unsigned int size) {
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

Status write_error(const std::string& path, int error) {
  const std::string what = path + ": cannot be written: " + std::strerror(error);
  return error == ENOSPC || error == EDQUOT ? resource_exhausted(what) : io_error(what);
}

}  // namespace

struct HashedFile::Digest {
  std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};

  Digest() { QUIRE_CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1); }

  void update(const void* bytes, size_t size) { QUIRE_CHECK(EVP_DigestUpdate(context.get(), bytes, size) == 1); }

  std::string finish() {
    Bytes bytes;
    unsigned int size = 0;
    QUIRE_CHECK(EVP_DigestFinal_ex(context.get(), bytes.data(), &size) == 1);
    return hexadecimal(bytes, size);
  }
};

HashedFile::HashedFile(std::string path, int file, std::unique_ptr<Digest> digest)
    : path_(std::move(path)), file_(file), digest_(std::move(digest)) {}

HashedFile::HashedFile(HashedFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      bytes_written_(other.bytes_written_),
      digest_(std::move(other.digest_)) {}

HashedFile::~HashedFile() {
  if (file_ >= 0) ::close(file_);
}

Result<HashedFile> HashedFile::create(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return write_error(path, errno);
  return HashedFile(path, file, std::make_unique<Digest>());
}

Status HashedFile::write(std::string_view bytes) {
  digest_->update(bytes.data(), bytes.size());
  bytes_written_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return write_error(path_, errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<std::string> HashedFile::finish() {
  const int synced = ::fsync(file_);
  const int sync_error = errno;
  const int closed = ::close(std::exchange(file_, -1));
  if (synced != 0) return write_error(path_, sync_error);
  if (closed != 0) return write_error(path_, errno);
  return digest_->finish();
}

std::string bytes_sha256(std::string_view bytes) {
  Bytes digest;
  unsigned int size = 0;
  QUIRE_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1);
  return hexadecimal(digest, size);
}

Result<std::string> file_sha256(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  std::string digest = bytes_sha256({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  QUIRE_RETURN_IF_ERROR(file.unchanged());
  return digest;
}

}  // namespace quire
