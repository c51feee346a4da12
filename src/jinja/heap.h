// Memory of one rendering: objects counted by reference, on one thread, all charged to one budget.
//
// Destruction never recurses, so a chain of a million nested lists is as harmless as its bytes, and it allocates nothing,
// so it works where memory has run out. Values of a template are immutable, except for the few object kinds that can hold
// something younger than themselves and so close a cycle (namespace, loop, activation); those register with the heap, which
// empties them when the rendering ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace quire::jinja {

class Heap;

class Object {
 public:
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  void retain() { ++references_; }
  void release();
  Heap& heap() const { return heap_; }

 protected:
  explicit Object(Heap& heap);
  virtual ~Object();

  void charge(size_t bytes);

 private:
  friend class Heap;
  Heap& heap_;
  size_t charged_bytes_ = 0;
  uint32_t references_ = 0;
  Object* next_retired_ = nullptr;  // where it waits to be destroyed
};

// An object that may become part of a cycle.
class CyclicObject : public Object {
 public:
  virtual void drop_references() = 0;

 protected:
  explicit CyclicObject(Heap& heap);
  ~CyclicObject() override;

 private:
  friend class Heap;
  CyclicObject* previous_ = nullptr;
  CyclicObject* next_ = nullptr;
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_ != nullptr) object_->retain();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->release();
  }

  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

class Heap {
 public:
  explicit Heap(size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  template <typename T, typename... Arguments>
  Ref<T> make(Arguments&&... arguments) {
    return Ref<T>(new T(*this, std::forward<Arguments>(arguments)...));
  }

  bool exhausted() const { return live_bytes_ > limit_bytes_; }
  // Empties every object that could be part of a cycle. Nothing may use them afterwards.
  void break_cycles();

 private:
  friend class Object;
  friend class CyclicObject;
  void retire(Object* object);

  size_t limit_bytes_;
  size_t live_bytes_ = 0;
  bool retiring_ = false;
  Object* retired_ = nullptr;
  CyclicObject* cyclic_ = nullptr;
};

}  // namespace quire::jinja
