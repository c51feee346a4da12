#include "jinja/heap.h"

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

// In three rounds, so that no object of the list is destroyed while others are emptied. Nothing here may allocate: it runs
// in destructors, also where memory has run out.
void Heap::break_cycles() {
  for (CyclicObject* object = cyclic_; object != nullptr; object = object->next_) object->retain();
  for (CyclicObject* object = cyclic_; object != nullptr; object = object->next_) object->drop_references();
  for (CyclicObject* object = cyclic_; object != nullptr;) {
    CyclicObject* const next = object->next_;
    object->release();
    object = next;
  }
}

// The destructor of an object releases its children, which lands here again: they wait in the list instead of
// being destroyed inside one another.
void Heap::retire(Object* object) {
  object->next_retired_ = retired_;
  retired_ = object;
  if (retiring_) return;
  retiring_ = true;
  while (retired_ != nullptr) {
    Object* const next = retired_;
    retired_ = next->next_retired_;
    delete next;
  }
  retiring_ = false;
}

}  // namespace quire::jinja
