// A directory that is being written under another name ("OUT.partial") until everything is in it.
// Owner: the writer; one thread.
#pragma once

#include <string>

#include "base/status.h"

namespace quire {

class PartialDirectory {
 public:
  // `path` must not exist, or be an empty directory that can be replaced. A partial directory that a stopped program left is removed, if it holds
  // only files.
  static Result<PartialDirectory> create(const std::string& path);

  PartialDirectory(PartialDirectory&& other) noexcept;
  PartialDirectory& operator=(PartialDirectory&& other) = delete;
  ~PartialDirectory();  // removes the partial directory unless it is finished

  // Where to write the file called `name`.
  std::string file(const std::string& name) const { return partial_ + "/" + name; }
  // The files are on the disk: gives the directory its name.
  Status finish();

 private:
  PartialDirectory(std::string path, std::string partial, int fd);

  std::string path_;
  std::string partial_;  // empty: finished or moved from
  int fd_ = -1;          // holds the lock that keeps other programs away
};

}  // namespace quire
