#include "jinja/heap.h"

#include <gtest/gtest.h>

namespace quire::jinja {
namespace {

class Node : public CyclicObject {
 public:
  Node(Heap& heap, int* alive, size_t bytes = 0) : CyclicObject(heap), alive_(alive) {
    ++*alive_;
    charge(bytes);
  }
  ~Node() override { --*alive_; }
  void drop_references() override { next = Ref<Node>(); }
  Ref<Node> next;

 private:
  int* alive_;
};

TEST(Heap, FreesWhatNobodyRefersTo) {
  Heap heap(1 << 20);
  int alive = 0;
  {
    const auto node = heap.make<Node>(&alive);
    const Ref<Node> second = node;
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Heap, FreesALongChainWithoutRecursion) {
  Heap heap(size_t{1} << 30);
  int alive = 0;
  auto head = heap.make<Node>(&alive);
  for (int i = 0; i < 1'000'000; ++i) {
    auto node = heap.make<Node>(&alive);
    node->next = std::move(head);
    head = std::move(node);
  }
  EXPECT_EQ(alive, 1'000'001);
  head = Ref<Node>();
  EXPECT_EQ(alive, 0);
}

TEST(Heap, FreesCyclesWhenItEnds) {
  int alive = 0;
  {
    Heap heap(1 << 20);
    const auto first = heap.make<Node>(&alive), second = heap.make<Node>(&alive);
    first->next = second;
    second->next = first;
    const auto self = heap.make<Node>(&alive);
    self->next = self;
  }
  EXPECT_EQ(alive, 0);
}

TEST(Heap, CountsLiveBytesOnly) {
  Heap heap(1000);
  int alive = 0;
  for (int i = 0; i < 100; ++i) heap.make<Node>(&alive, 600);
  EXPECT_FALSE(heap.exhausted());
  const auto first = heap.make<Node>(&alive, 600), second = heap.make<Node>(&alive, 600);
  EXPECT_TRUE(heap.exhausted());
}

}  // namespace
}  // namespace quire::jinja
