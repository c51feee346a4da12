#include "formats/git_lfs.h"

#include <string_view>

namespace quire {

Status refuse_git_lfs_pointer(std::span<const std::byte> bytes, const std::string& path) {
  constexpr std::string_view kVersion = "version https://git-lfs.github.com/spec/";
  if (!std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(kVersion)) return {};
  return unsupported(
      path +
      ": is a Git LFS pointer, not the file itself; run `git lfs pull` in its repository, or download the "
      "file");
}

}  // namespace quire
