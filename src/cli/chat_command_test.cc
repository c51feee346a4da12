#include "cli/chat_command.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

ChatVerb verb_of(std::string_view text) { return parse_chat_command(text).value().verb; }

TEST(ChatCommand, IsAWordAfterASlash) {
  EXPECT_EQ(verb_of("/help"), ChatVerb::kHelp);
  EXPECT_EQ(verb_of("/clear  "), ChatVerb::kClear);
  EXPECT_EQ(verb_of("/bye"), ChatVerb::kBye);
  EXPECT_EQ(verb_of("/exit"), ChatVerb::kBye);
  EXPECT_EQ(parse_chat_command("/system  Be brief. \n").value().argument, "Be brief.");
  EXPECT_EQ(parse_chat_command("/save a b.json").value().argument, "a b.json");
}

TEST(ChatCommand, LeavesMessagesAlone) {
  for (const char* text : {"hello", "", " /clear", "/", "// a comment", "/usr/bin is what?", "/1", "a /clear"}) {
    EXPECT_EQ(verb_of(text), ChatVerb::kMessage) << text;
    EXPECT_EQ(parse_chat_command(text).value().argument, text);
  }
}

TEST(ChatCommand, SaysWhatIsWrong) {
  const auto says = [](std::string_view text) { return parse_chat_command(text).status().message(); };
  EXPECT_NE(says("/claer").find("did you mean /clear?"), std::string::npos);
  EXPECT_NE(says("/frobnicate").find("/help"), std::string::npos);
  EXPECT_NE(says("/save").find("the name of a file"), std::string::npos);
  EXPECT_NE(says("/bye now").find("takes nothing"), std::string::npos);
}

TEST(ChatCommand, HelpNamesEveryCommand) {
  for (const char* name : {"/help", "/clear", "/system", "/set", "/save", "/load", "/bye"}) {
    EXPECT_NE(chat_help().find(name), std::string::npos) << name;
  }
}

TEST(ChatOptions, AreThoseOfRequests) {
  const Options at_start;
  Options options;
  EXPECT_EQ(set_chat_option("temperature 0.2", at_start, options).value(), "temperature  0.2");
  EXPECT_EQ(options.temperature, 0.2);
  EXPECT_TRUE(set_chat_option("top_k = 40", at_start, options).ok());
  EXPECT_EQ(options.top_k, 40);
  EXPECT_TRUE(set_chat_option("ignore-eos true", at_start, options).ok());
  EXPECT_TRUE(options.ignore_eos);
  EXPECT_TRUE(set_chat_option("stop a b", at_start, options).ok());
  EXPECT_EQ(options.stop, std::vector<std::string>{"a b"});
  EXPECT_NE(chat_options(options).find("0.2"), std::string::npos);
  EXPECT_TRUE(set_chat_option("temperature default", at_start, options).ok());
  EXPECT_FALSE(options.temperature.has_value());
}

TEST(ChatOptions, SayWhatIsWrong) {
  const Options at_start;
  Options options;
  const auto says = [&](std::string_view text) { return set_chat_option(text, at_start, options).status().message(); };
  EXPECT_NE(says("temprature 1").find("did you mean temperature?"), std::string::npos);
  EXPECT_NE(says("temperature hot").find("it takes a number"), std::string::npos);
  EXPECT_NE(says("top-p 2").find("0 to 1"), std::string::npos);
  EXPECT_NE(says("port 1").find("is no option of the answers"), std::string::npos);
}

}  // namespace
}  // namespace quire
