#include "options/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

namespace quire {
namespace {

Status set_text(Options& options, std::string_view name, std::string_view text) {
  const OptionRow* row = find_option(name);
  EXPECT_NE(row, nullptr) << name;
  const std::string flag = "--" + std::string(name);
  const Result<OptionValue> value = parse_option(*row, text, flag);
  return value.ok() ? set_option(options, *row, *value, flag) : value.status();
}

TEST(OptionTable, NamesEachOptionOnce) {
  std::set<std::string_view> names;
  std::set<const void*> members;
  const Options options;
  for (const OptionRow& row : option_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    const void* member = std::visit([&](auto m) { return static_cast<const void*>(&(options.*m)); }, row.member);
    EXPECT_TRUE(members.insert(member).second) << row.name << " shares its member with another option";
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_NE(row.commands, 0u) << row.name;
    EXPECT_EQ(row.value_name.empty(), is_switch(row)) << row.name;
  }
  EXPECT_EQ(find_option("no-such-option"), nullptr);
}

TEST(OptionTable, EveryDefaultIsInItsOwnRange) {
  for (const OptionRow& row : option_table()) {
    if (is_switch(row) || is_list(row) || !row.unset_text.empty()) continue;
    Options options;
    const Status status = set_text(options, row.name, default_text(row));
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(OptionTable, HelpNamesTheFallbacksThatAreUsed) {
  EXPECT_EQ(std::stod(default_text(*find_option("temperature")).substr(std::string("the model's, else ").size())),
            kFallbackTemperature);
  EXPECT_EQ(std::stod(default_text(*find_option("top-p")).substr(std::string("the model's, else ").size())),
            kFallbackTopP);
}

TEST(OptionTable, SpellsNamesForEveryPlace) {
  const OptionRow& row = *find_option("stop-token-ids");
  EXPECT_EQ(json_key(row), "stop_token_ids");
  EXPECT_EQ(environment_name(row), "QUIRE_STOP_TOKEN_IDS");
  EXPECT_EQ(range_text(*find_option("repetition-penalty")), "above 0, at most 1000");
  EXPECT_EQ(range_text(*find_option("top-p")), "0 to 1");
  EXPECT_EQ(range_text(*find_option("isa")), "auto, scalar, avx2 or avx512");
  EXPECT_EQ(range_text(*find_option("seed")), "");
  EXPECT_EQ(range_text(*find_option("min-p")), "0 to 1");
  EXPECT_EQ(range_text(*find_option("top-k")), "-1 or more");
  EXPECT_EQ(range_text(*find_option("top-k"), true), "-1 to 2147483647");
}

TEST(SetOption, ReadsEveryKind) {
  Options options;
  EXPECT_TRUE(set_text(options, "threads", "3").ok());
  EXPECT_EQ(options.threads, 3);
  EXPECT_TRUE(set_text(options, "temperature", "0").ok());
  EXPECT_EQ(options.temperature, 0.0);
  EXPECT_TRUE(set_text(options, "seed", "18446744073709551615").ok());
  EXPECT_EQ(options.seed, 18446744073709551615u);
  EXPECT_TRUE(set_text(options, "stop-token-ids", "1,22,333").ok());
  EXPECT_EQ(options.stop_token_ids, (std::vector<int64_t>{1, 22, 333}));
  EXPECT_TRUE(set_text(options, "isa", "scalar").ok());
  EXPECT_EQ(options.isa, "scalar");
  EXPECT_TRUE(set_text(options, "ignore-eos", "1").ok());
  EXPECT_TRUE(options.ignore_eos);
}

TEST(SetOption, SaysWhatIsWrongAndWhatItTakes) {
  const struct {
    const char* name;
    const char* text;
    const char* message;
  } cases[] = {
      {"threads", "-1", "--threads is -1; it takes a whole number of 0 to 1024"},
      {"threads", "2.5", "--threads is \"2.5\"; it takes a whole number of 0 to 1024"},
      {"threads", "", "--threads is \"\"; it takes a whole number of 0 to 1024"},
      {"threads", "99999999999999999999",
       "--threads is \"99999999999999999999\"; it takes a whole number of 0 to 1024"},
      {"temperature", "nan", "--temperature is nan; it takes a number of 0 to 1000"},
      {"temperature", "0.5x", "--temperature is \"0.5x\"; it takes a number of 0 to 1000"},
      {"repetition-penalty", "0", "--repetition-penalty is 0; it takes a number of above 0, at most 1000"},
      {"top-p", "1.01", "--top-p is 1.01; it takes a number of 0 to 1"},
      {"seed", "-1.5", "--seed is \"-1.5\"; it takes a whole number of 64 bits"},
      {"isa", "sse", "--isa is \"sse\"; it takes auto, scalar, avx2 or avx512"},
      {"stop-token-ids", "1,,2", "--stop-token-ids is \"1,,2\"; it takes a list of whole numbers of 0 to 2147483647"},
      {"stop-token-ids", "1,-2", "--stop-token-ids is 1,-2; it takes a list of whole numbers of 0 to 2147483647"},
      {"raw", "yes", "--raw is \"yes\"; it takes true or false"},
  };
  for (const auto& c : cases) {
    Options options;
    EXPECT_EQ(set_text(options, c.name, c.text).message(), c.message);
  }
}

TEST(SetOption, ConvertsWhereNothingIsLost) {
  Options options;
  EXPECT_TRUE(set_option(options, *find_option("temperature"), int64_t{1}, "t").ok());
  EXPECT_EQ(options.temperature, 1.0);
  EXPECT_TRUE(set_option(options, *find_option("seed"), int64_t{5}, "s").ok());
  EXPECT_EQ(options.seed, 5u);
  EXPECT_TRUE(set_option(options, *find_option("stop"), std::string("END"), "s").ok());
  EXPECT_EQ(options.stop, std::vector<std::string>{"END"});
  EXPECT_TRUE(set_option(options, *find_option("top-k"), 3.0, "k").ok());
  EXPECT_EQ(options.top_k, 3);
  EXPECT_TRUE(set_option(options, *find_option("seed"), int64_t{-1}, "s").ok());
  EXPECT_EQ(options.seed, UINT64_MAX);
  EXPECT_TRUE(set_option(options, *find_option("seed"), -9223372036854775808.0, "s").ok());
  EXPECT_EQ(options.seed, uint64_t{1} << 63);
  EXPECT_FALSE(set_option(options, *find_option("top-k"), 1.5, "k").ok());
  EXPECT_FALSE(set_option(options, *find_option("top-k"), true, "k").ok());
  EXPECT_FALSE(set_option(options, *find_option("ignore-eos"), int64_t{1}, "i").ok());
  EXPECT_FALSE(set_option(options, *find_option("max-tokens"), uint64_t{1} << 63, "m").ok());
}

// What was given and what is taken must not seem to be the same.
TEST(SetOption, ContradictsItselfNowhere) {
  const struct {
    const char* name;
    OptionValue value;
    const char* message;
  } cases[] = {
      {"max-tokens", 3.5, "x is 3.5; it takes a whole number of 1 to 1073741824"},
      {"max-tokens", 1e300, "x is 1e+300; it takes a whole number of 1 to 1073741824"},
      {"max-tokens", 1e-9, "x is 1e-09; it takes a whole number of 1 to 1073741824"},
      {"seed", 1e300, "x is 1e+300; it takes a whole number of 64 bits"},
      {"seed", 18446744073709551616.0, "x is 18446744073709551616; it takes a whole number of 64 bits"},
      {"temperature", std::vector<int64_t>{1}, "x is a list of whole numbers; it takes a number of 0 to 1000"},
      {"top-k", std::vector<int64_t>{5}, "x is a list of whole numbers; it takes a whole number of -1 to 2147483647"},
      {"top-p", 1.0000001, "x is 1.0000001; it takes a number of 0 to 1"},
      {"temperature", -1e-9, "x is -1e-09; it takes a number of 0 to 1000"},
  };
  for (const auto& c : cases) {
    Options options;
    EXPECT_EQ(set_option(options, *find_option(c.name), c.value, "x").message(), c.message);
  }
}

TEST(ReadEnvironment, SetsWhatTheCommandTakes) {
  ASSERT_EQ(setenv("QUIRE_TOP_K", "12", 1), 0);
  ASSERT_EQ(setenv("QUIRE_THREADS", "", 1), 0);
  Options options;
  EXPECT_TRUE(read_environment(options, kRun).ok());
  EXPECT_EQ(options.top_k, 12);
  EXPECT_EQ(options.threads, 0);
  ASSERT_EQ(setenv("QUIRE_TOP_K", "many", 1), 0);
  EXPECT_TRUE(read_environment(options, kScore).ok());
  EXPECT_EQ(read_environment(options, kRun).message(),
            "QUIRE_TOP_K is \"many\"; it takes a whole number of -1 to 2147483647");
  unsetenv("QUIRE_TOP_K");
  unsetenv("QUIRE_THREADS");
}

}  // namespace
}  // namespace quire
