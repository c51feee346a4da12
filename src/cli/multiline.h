// What a person types as one message, from the lines of the editor: `"""` begins a text that goes on to the next `"""`, and a
// `\` at the end of a line goes on with the next. One message at a time; one thread.
#pragma once

#include <string>
#include <string_view>

namespace quire {

class MessageLines {
 public:
  // Takes a line, which may itself hold several (a paste). True: the message is complete.
  bool add(std::string_view line);
  // The complete message; begins anew.
  std::string take();
  void clear();
  bool begun() const { return quoted_ || begun_; }

 private:
  std::string text_;
  bool quoted_ = false;
  bool begun_ = false;  // lines have been added
};

}  // namespace quire
