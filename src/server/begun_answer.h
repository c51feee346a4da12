// An answer that a client has begun and the model goes on with (continue_final_message): the rendered chat ends where the
// client's words end, without what the template puts behind a message.
//
// A tag that occurs nowhere else stands behind those words while the template is rendered; the chat is cut there. So the
// template may do to the words what it likes, as long as they come out. Pure functions, any thread.
// Source: `continue_final_message` of transformers' chat templates, which trims where the template trims.
#pragma once

#include <string>

#include "base/status.h"
#include "text/marked_text.h"

namespace quire {

struct BegunAnswer {
  std::string tag;    // empty: no answer is begun
  std::string words;  // what the client wrote
};

std::string new_tag();

// Cuts `chat` behind the words. Fails where the template does not show them as the last that they are.
Status end_behind(const BegunAnswer& begun, MarkedText* chat);

}  // namespace quire
