#include "formats/text_file.h"

#include "base/mapped_file.h"
#include "formats/git_lfs.h"

namespace quire {

Result<std::string> read_text_file(const std::string& path, size_t max_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > max_bytes) {
    return out_of_range(path + ": has " + std::to_string(bytes.size()) + " bytes; at most " +
                        std::to_string(max_bytes) + " are read");
  }
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  QUIRE_RETURN_IF_ERROR(file.unchanged());
  QUIRE_RETURN_IF_ERROR(refuse_git_lfs_pointer(std::as_bytes(std::span(text)), path));
  return text;
}

}  // namespace quire
