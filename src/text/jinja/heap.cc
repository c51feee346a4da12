#include "text/jinja/heap.h"

namespace quire::jinja {
namespace {

constexpr size_t kObjectOverheadBytes = 64;

}  // namespace

Object::Object(Heap& heap) : heap_(heap) { charge(kObjectOverheadBytes); }

Object::~Object() { heap_.live_bytes_ -= charged_bytes_; }

void Object::charge(size_t bytes) {
  charged_bytes_ += bytes;
  heap_.live_bytes_ += bytes;
}

void Object::release() {
  if (--references_ == 0) heap_.retire(this);
}

CyclicObject::CyclicObject(Heap& heap) : Object(heap), next_(heap.cyclic_) {
  if (next_ != nullptr) next_->previous_ = this;
  heap.cyclic_ = this;
}

CyclicObject::~CyclicObject() {
  if (next_ != nullptr) next_->previous_ = previous_;
  if (previous_ != nullptr) {
    previous_->next_ = next_;
  } else {
    heap().cyclic_ = next_;
  }
}

Heap::~Heap() { break_cycles(); }

void Heap::break_cycles() {
  std::vector<Ref<CyclicObject>> pinned;
  for (CyclicObject* object = cyclic_; object != nullptr; object = object->next_) pinned.emplace_back(object);
  for (const auto& object : pinned) object->drop_references();
}

// The destructor of an object releases its children, which lands here again: they wait in the list instead of
// being destroyed inside one another.
void Heap::retire(Object* object) {
  retired_.push_back(object);
  if (retiring_) return;
  retiring_ = true;
  while (!retired_.empty()) {
    Object* next = retired_.back();
    retired_.pop_back();
    delete next;
  }
  retiring_ = false;
}

}  // namespace quire::jinja
