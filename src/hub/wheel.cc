#include "hub/wheel.h"

#include <fnmatch.h>
#include <zip.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace quire {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
using Member = std::unique_ptr<zip_file_t, CloseMember>;

Result<Archive> open_archive(const std::string& path) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (archive != nullptr) return Archive(archive);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  Status status = corrupt(path + ": is no wheel: " + zip_error_strerror(&error));
  zip_error_fini(&error);
  return status;
}

std::vector<std::pair<std::string, zip_uint64_t>> matching_members(zip_t* archive, const std::string& pattern) {
  std::vector<std::pair<std::string, zip_uint64_t>> members;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* name = zip_get_name(archive, index, 0);
    if (name != nullptr && fnmatch(pattern.c_str(), name, 0) == 0) members.emplace_back(name, index);
  }
  std::sort(members.begin(), members.end());
  return members;
}

Status unpack_member(zip_t* archive, zip_uint64_t index, const std::string& shown_as,
                     const std::function<Status(std::string_view bytes)>& sink) {
  const Member member(zip_fopen_index(archive, index, 0));
  if (member == nullptr) return corrupt(shown_as + ": cannot be read: " + zip_strerror(archive));
  std::string piece(kPieceBytes, '\0');
  while (true) {
    const zip_int64_t count = zip_fread(member.get(), piece.data(), piece.size());
    if (count < 0) return corrupt(shown_as + ": is damaged: " + zip_file_strerror(member.get()));
    if (count == 0) return {};
    QUIRE_RETURN_IF_ERROR(sink(std::string_view(piece.data(), static_cast<size_t>(count))));
  }
}

}  // namespace

Status unpack_members(const std::string& wheel_path, const std::string& pattern,
                      const std::function<Status(std::string_view bytes)>& sink) {
  QUIRE_ASSIGN_OR_RETURN(const Archive archive, open_archive(wheel_path));
  const auto members = matching_members(archive.get(), pattern);
  if (members.empty()) return not_found(wheel_path + ": holds no file that matches " + pattern);
  for (const auto& [name, index] : members) {
    QUIRE_RETURN_IF_ERROR(unpack_member(archive.get(), index, wheel_path + ": " + name, sink));
  }
  return {};
}

}  // namespace quire
