#include "cli/chat_session.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/units.h"
#include "cli/answer.h"
#include "cli/chat.h"
#include "cli/chat_command.h"
#include "cli/generation.h"
#include "cli/history_file.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/multiline.h"
#include "cli/terminal.h"
#include "cli/terminal_mode.h"

namespace quire {
namespace {

constexpr int64_t kLargestChatBytes = 16 << 20;
constexpr int64_t kLeastRoom = 16;  // tokens that an answer gets at least before old turns are dropped for it

class ChatSession {
 public:
  ChatSession(Generator& generator, const Options& options)
      : generator_(generator),
        at_start_(options),
        options_(options),
        conversation_(generator, options.system, options.raw),
        history_(history_path(options.history)) {
    if (is_terminal(stdout)) terminal_.emplace();
    if (terminal_) editor_ = LineEditor::create(*terminal_, interrupt_);
    if (editor_ != nullptr) recall();
  }

  Status run();

 private:
  enum class Next { kGoOn, kLeave };

  LineReader::Event read_line(std::string_view prompt, std::string& line);
  LineReader::Event read_message(std::string& text);
  bool confirmed(const std::string& question, bool by_default);
  void recall();
  void keep(const std::string& text);

  Next obey(const ChatCommand& command);
  void say(const std::string& text);
  Result<std::optional<std::vector<int32_t>>> make_room(const std::string& text);
  void set_system(const std::string& text);
  Status save(const std::string& path);
  Status load(const std::string& path);

  Generator& generator_;
  const Options at_start_;
  Options options_;
  Conversation conversation_;
  HistoryFile history_;
  InterruptScope interrupt_;
  std::optional<ChatTerminal> terminal_;
  std::unique_ptr<LineEditor> editor_;  // null: lines are read as they come
  LineReader reader_;
};

LineReader::Event ChatSession::read_line(std::string_view prompt, std::string& line) {
  if (editor_ != nullptr) {
    switch (editor_->next(prompt, line)) {
      case LineEditor::Event::kLine:
        return LineReader::Event::kLine;
      case LineEditor::Event::kEnd:
        return LineReader::Event::kEnd;
      case LineEditor::Event::kInterrupted:
        return LineReader::Event::kInterrupted;
    }
  }
  // Where the answers go into a file, the prompts do not.
  std::FILE* screen = terminal_ ? stdout : stderr;
  std::fputs(styled(screen, Style::kPrompt, prompt).c_str(), screen);
  std::fflush(screen);
  const LineReader::Event event = reader_.next(line, interrupt_);
  if (event != LineReader::Event::kLine) std::fputs("\n", screen);
  return event;
}

// A message may take several lines.
LineReader::Event ChatSession::read_message(std::string& text) {
  MessageLines lines;
  std::string line;
  while (true) {
    const LineReader::Event event = read_line(lines.begun() ? ". " : "> ", line);
    if (event != LineReader::Event::kLine) return event;
    if (!lines.add(line)) continue;
    text = lines.take();
    return event;
  }
}

bool ChatSession::confirmed(const std::string& question, bool by_default) {
  std::string line;
  const LineReader::Event event = read_line(question + (by_default ? " [Y/n] " : " [y/N] "), line);
  if (event == LineReader::Event::kInterrupted) interrupt_.take();
  if (event != LineReader::Event::kLine) return false;
  const size_t at = line.find_first_not_of(' ');
  return at == std::string::npos ? by_default : line[at] == 'y' || line[at] == 'Y';
}

void ChatSession::recall() {
  const Result<std::vector<std::string>> entries = history_.load();
  if (!entries.ok()) return note("no history: " + entries.status().message());
  for (const std::string& entry : *entries) editor_->remember(entry);
}

void ChatSession::keep(const std::string& text) {
  if (editor_ == nullptr) return;
  editor_->remember(text);
  if (const Status kept = history_.append(text); !kept.ok()) {
    note("history is off: " + kept.message());
    history_ = HistoryFile("");
  }
}

Status ChatSession::run() {
  note("Ctrl-C stops an answer, Ctrl-D leaves, /help lists the commands.");
  bool leaving = false;
  std::string text;
  while (true) {
    switch (read_message(text)) {
      case LineReader::Event::kEnd:
        return {};
      case LineReader::Event::kInterrupted:
        interrupt_.take();
        if (leaving || interrupt_.end_asked()) return cancelled("");
        leaving = true;
        note("Ctrl-C again, or Ctrl-D, leaves.");
        continue;
      case LineReader::Event::kLine:
        break;
    }
    leaving = false;
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    keep(text);
    const Result<ChatCommand> command = parse_chat_command(text);
    if (!command.ok()) {
      print_error(command.status().message());
    } else if (obey(*command) == Next::kLeave) {
      return {};
    }
    if (interrupt_.end_asked()) return cancelled("");
  }
}

ChatSession::Next ChatSession::obey(const ChatCommand& command) {
  const auto report = [](const Status& status) {
    if (!status.ok()) print_error(status.message());
  };
  switch (command.verb) {
    case ChatVerb::kMessage:
      say(command.argument);
      break;
    case ChatVerb::kHelp:
      note(chat_help());
      break;
    case ChatVerb::kClear:
      note("forgot " + counted(static_cast<int64_t>(conversation_.turns()), "turn") + ".");
      conversation_.clear();
      break;
    case ChatVerb::kSystem:
      set_system(command.argument);
      break;
    case ChatVerb::kSet:
      if (command.argument.empty()) {
        note(chat_options(options_));
      } else {
        const Result<std::string> set = set_chat_option(command.argument, at_start_, options_);
        set.ok() ? note(*set) : print_error(set.status().message());
      }
      break;
    case ChatVerb::kSave:
      report(save(command.argument));
      break;
    case ChatVerb::kLoad:
      report(load(command.argument));
      break;
    case ChatVerb::kBye:
      return Next::kLeave;
  }
  return Next::kGoOn;
}

void ChatSession::set_system(const std::string& text) {
  if (!text.empty()) conversation_.set_system(text == "\"\"" ? "" : text);
  const std::string& system = conversation_.system();
  note(system.empty() ? "There is no system message." : "The system message is: " + visible_text(system));
}

// The prompt for `text`, where need be without the oldest turns. Nothing: the person would not have them dropped.
Result<std::optional<std::vector<int32_t>>> ChatSession::make_room(const std::string& text) {
  const int64_t context = generator_.context();
  const int64_t room = std::min(options_.max_tokens.value_or(context), std::max(kLeastRoom, context / 8));
  std::vector<int32_t> prompt;
  const auto fits = [&](size_t without) -> Result<bool> {
    QUIRE_ASSIGN_OR_RETURN(prompt, conversation_.prompt_for(text, without));
    return static_cast<int64_t>(prompt.size()) + room <= context;
  };
  const size_t turns = conversation_.turns();
  QUIRE_ASSIGN_OR_RETURN(const std::optional<size_t> without, fewest_to_drop(turns, fits));
  // Alone it may fit with less room than wished; print_answer() says where it does not fit at all.
  const size_t dropped = without.value_or(turns);
  QUIRE_ASSIGN_OR_RETURN(prompt, conversation_.prompt_for(text));
  if (dropped == 0) return std::optional(std::move(prompt));
  const auto length = static_cast<int64_t>(prompt.size());
  QUIRE_ASSIGN_OR_RETURN(prompt, conversation_.prompt_for(text, dropped));
  QUIRE_RETURN_IF_ERROR(generator_.check_prompt(prompt));  // before anything is dropped for nothing
  note("The conversation with this message has " + count_text(length) + " of " + count_text(context) +
       " tokens, which leaves too little for an answer.");
  const std::string question = dropped == turns ? "Forget all of the " + counted(static_cast<int64_t>(turns), "turn")
                                                : "Forget the oldest " + count_text(static_cast<int64_t>(dropped)) +
                                                      " of " + counted(static_cast<int64_t>(turns), "turn");
  if (!confirmed(question + " and go on?", true)) {
    note("Not sent; the conversation is as it was. /save keeps it, /clear forgets it, --context gives it more room.");
    return std::optional<std::vector<int32_t>>();
  }
  conversation_.drop_oldest(dropped);
  return std::optional(std::move(prompt));
}

void ChatSession::say(const std::string& text) {
  Result<std::optional<std::vector<int32_t>>> prompt = make_room(text);
  if (!prompt.ok()) return print_error(prompt.status().message());
  if (!prompt->has_value()) return;
  const bool hides = terminal_ && editor_ == nullptr;  // the editor does so anyway
  if (hides) terminal_->hide_input();
  const Result<GenerateResult> result = print_answer(generator_, options_, std::move(**prompt), interrupt_);
  if (hides) terminal_->show_input();
  interrupt_.take();
  if (!result.ok()) return print_error(result.status().message());
  // In a file, too, the next answer begins on a line of its own.
  if (!terminal_ && !result->text.ends_with('\n')) std::fputs("\n", stdout);
  conversation_.remember(text, result->text);
}

// For the owner alone, and whole or not at all.
Status ChatSession::save(const std::string& path) {
  struct stat there {};
  const bool exists = ::stat(path.c_str(), &there) == 0;
  if (exists && !S_ISREG(there.st_mode)) return invalid_argument(path + ": is no regular file; name another");
  if (exists && !confirmed(path + " exists. Replace it?", false)) {
    note("Not saved.");
    return {};
  }
  const std::string text = conversation_.messages_json();
  const std::string fresh = path + ".new";
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return io_error(path + ": cannot be written: " + std::strerror(errno));
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool kept = ::close(file) == 0 && written && ::rename(fresh.c_str(), path.c_str()) == 0;
  if (!kept) {
    const int error = errno;
    ::unlink(fresh.c_str());
    return io_error(path + ": cannot be written: " + std::strerror(error));
  }
  note("saved " + counted(static_cast<int64_t>(conversation_.turns()), "turn") + " in " + path + ".");
  return {};
}

Status ChatSession::load(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(path, kLargestChatBytes));
  QUIRE_RETURN_IF_ERROR(conversation_.load(text, path));
  note("The conversation has " + counted(static_cast<int64_t>(conversation_.turns()), "turn") + ", from " + path + ".");
  return {};
}

}  // namespace

Status chat_with_person(Generator& generator, const Options& options) {
  QUIRE_RETURN_IF_ERROR(load_with_progress(generator));
  return ChatSession(generator, options).run();
}

}  // namespace quire
