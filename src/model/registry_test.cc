#include "model/registry.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

Hparams small(const std::string& architecture) {
  Hparams h;
  h.architecture = architecture;
  h.vocab_size = 100;
  h.context_length = 1024;
  h.hidden = 64;
  h.layers = 4;
  h.heads = 4;
  h.kv_heads = 2;
  h.head_dim = 16;
  h.ffn_hidden = 128;
  h.rope_dim = 16;
  return h;
}

TEST(Registry, LayersOfOneKindShareOneGroup) {
  const auto config = configure_model(small("llama"));
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(config->kv_groups.size(), 1u);
  EXPECT_EQ(config->kv_groups[0].layers, 4);
  EXPECT_EQ(config->layers[3].index_in_group, 3);
  EXPECT_FLOAT_EQ(config->attention_scale, 0.25f);
}

TEST(Registry, SlidingLayersHaveTheirOwnGroupAndRope) {
  Hparams h = small("gemma3");
  h.sliding_window = 32;
  h.layer_slides = {true, true, false, true};
  h.rope_local = RopeParams{};
  const auto config = configure_model(h);
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(config->kv_groups.size(), 2u);
  EXPECT_EQ(config->kv_groups[0].window, 32);
  EXPECT_EQ(config->kv_groups[0].layers, 3);
  EXPECT_EQ(config->kv_groups[1].name, "global");
  EXPECT_EQ(config->layers[2].kv_group, 1);
  EXPECT_EQ(config->layers[2].rope, 0);
  EXPECT_EQ(config->layers[3].rope, 1);
  EXPECT_EQ(config->layers[3].index_in_group, 2);
  EXPECT_TRUE(config->post_norms);
}

TEST(Registry, RefusesWhatItCannotRun) {
  EXPECT_NE(configure_model(small("mamba")).status().message().find("mamba"), std::string::npos);
  Hparams wide = small("llama");
  wide.head_dim = 1024;
  EXPECT_EQ(configure_model(wide).status().code(), StatusCode::kUnsupported);
  Hparams rope = small("llama");
  rope.rope.scaling = RopeScaling::kDynamic;
  EXPECT_EQ(configure_model(rope).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace quire
