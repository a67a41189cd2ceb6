// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <sys/mman.h>

#include "shardwise/core/config.hpp"

/// \file
/// Memory: aligned, in huge pages where large, and counted. Every buffer of the library is a Buffer on a
/// `std::pmr::memory_resource`; a rank's two resources are the two halves of its MemoryAccount.

namespace shardwise::inline SHARDWISE_ABI {

/// Every buffer starts at a multiple of this many bytes.
inline constexpr std::size_t buffer_alignment = 64;
/// From this size on, buffers are aligned to it and ask the kernel for transparent huge pages.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

/// Takes memory from the C++ runtime; from 2 MiB on aligned to and advised as huge pages.
class HugePageResource final : public std::pmr::memory_resource {
  private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        const auto aligned = effective_alignment(bytes, alignment);
        void* memory = ::operator new (bytes, std::align_val_t{aligned});
        if (const std::size_t huge = bytes / huge_page_bytes * huge_page_bytes; huge != 0) {
            madvise(memory, huge, MADV_DONTNEED);  // what was here: huge pages replace no small ones
            madvise(memory, huge, MADV_HUGEPAGE);
        }
        return memory;
    }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
        ::operator delete (memory, std::align_val_t{effective_alignment(bytes, alignment)});
    }
    [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
        return dynamic_cast<const HugePageResource*>(&other) != nullptr;
    }
    static std::size_t effective_alignment(std::size_t bytes, std::size_t alignment) {
        return std::max({alignment, buffer_alignment, bytes >= huge_page_bytes ? huge_page_bytes : 1});
    }
};

/// What a rank's memory is for.
enum class MemoryPart : std::uint8_t {
    tables,   ///< weights, of modules too, and what finds rows
    moments,  ///< the optimizer's state of rows
    marks,    ///< of rows to sync with their copies
    flights,  ///< what batches need: ids, vectors, messages
    syncs     ///< what syncs of copies need
};
/// How many there are.
inline constexpr std::size_t memory_parts = 5;

/// Counts bytes and allocations of one rank, by what they are for: what lives as long as a layer (tables, moments,
/// marks), and what its work needs (flights, syncs). Thread safe.
class MemoryAccount {
  public:
    MemoryAccount() = default;
    MemoryAccount(const MemoryAccount&) = delete;
    MemoryAccount& operator=(const MemoryAccount&) = delete;

    [[nodiscard]] std::pmr::memory_resource& of(MemoryPart part) noexcept {
        return parts_[static_cast<std::size_t>(part)];
    }
    [[nodiscard]] std::pmr::memory_resource& tables() noexcept { return of(MemoryPart::tables); }
    [[nodiscard]] std::pmr::memory_resource& work() noexcept { return of(MemoryPart::flights); }

    /// Bytes held now for one thing.
    [[nodiscard]] std::int64_t bytes(MemoryPart part) const noexcept {
        return parts_[static_cast<std::size_t>(part)].held;
    }
    /// Bytes held now for what lives as long as a layer.
    [[nodiscard]] std::int64_t static_bytes() const noexcept {
        return bytes(MemoryPart::tables) + bytes(MemoryPart::moments) + bytes(MemoryPart::marks);
    }
    /// Bytes held now for work.
    [[nodiscard]] std::int64_t dynamic_bytes() const noexcept {
        return bytes(MemoryPart::flights) + bytes(MemoryPart::syncs);
    }
    /// The most bytes that were ever held at once.
    [[nodiscard]] std::int64_t peak_bytes() const noexcept { return peak_; }
    /// Number of allocations so far.
    [[nodiscard]] std::int64_t allocations() const noexcept { return count_; }

  private:
    struct Counting final : std::pmr::memory_resource {
        explicit Counting(MemoryAccount& account) : owner{account} {}
        MemoryAccount& owner;
        std::atomic<std::int64_t> held{0};

        void* do_allocate(std::size_t bytes, std::size_t alignment) override {
            void* memory = owner.upstream_.allocate(bytes, alignment);
            held += static_cast<std::int64_t>(bytes);
            ++owner.count_;
            const std::int64_t now = owner.held_ += static_cast<std::int64_t>(bytes);
            for (std::int64_t seen = owner.peak_; seen < now && !owner.peak_.compare_exchange_weak(seen, now);) {
            }
            return memory;
        }
        void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
            owner.upstream_.deallocate(memory, bytes, alignment);
            held -= static_cast<std::int64_t>(bytes);
            owner.held_ -= static_cast<std::int64_t>(bytes);
        }
        [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
    };

    HugePageResource upstream_;
    Counting parts_[memory_parts] = {Counting{*this}, Counting{*this}, Counting{*this}, Counting{*this},
                                     Counting{*this}};
    std::atomic<std::int64_t> held_{0};
    std::atomic<std::int64_t> count_{0};
    std::atomic<std::int64_t> peak_{0};
};

/// The bytes that a buffer takes from its resource to hold `bytes`: rounded up to the next eighth of a power of two,
/// so that sizes which vary from batch to batch settle quickly. A pure function; the memory reader uses it too.
[[nodiscard]] constexpr std::size_t buffer_capacity(std::size_t bytes) noexcept {
    if (bytes == 0) return 0;
    const std::size_t step = std::max(buffer_alignment, std::bit_floor(bytes) / 8);
    return (bytes + step - 1) / step * step;
}

/// An owning array of trivial elements on a memory resource. Growing does not keep the old elements.
template <class T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::pmr::memory_resource& resource) : resource_{&resource} {}
    Buffer(std::pmr::memory_resource& resource, std::size_t size) : resource_{&resource} { resize(size); }
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        Buffer{std::move(other)}.swap(*this);
        return *this;
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { release(); }

    /// Takes memory from `resource` from now on; only an empty buffer can change where it takes it.
    Buffer& on(std::pmr::memory_resource& resource) noexcept {
        if (data_ == nullptr) resource_ = &resource;
        return *this;
    }
    /// Makes room for `size` elements with unspecified values; allocates only when the capacity does not suffice.
    /// \throws std::bad_array_new_length for more bytes than a pointer can tell apart, as of a product that wrapped
    /// around
    std::span<T> resize(std::size_t size) {
        if (size > capacity_ / sizeof(T)) {
            if (size > std::size_t{PTRDIFF_MAX} / sizeof(T)) throw std::bad_array_new_length{};
            release();
            const std::size_t bytes = buffer_capacity(size * sizeof(T));
            data_ = static_cast<T*>(resource_->allocate(bytes, buffer_alignment));
            capacity_ = bytes;
        }
        size_ = size;
        return span();
    }
    /// As resize, with every byte zero.
    std::span<T> assign_zero(std::size_t size) {
        resize(size);
        if (size != 0) std::memset(static_cast<void*>(data_), 0, size * sizeof(T));
        return span();
    }
    /// Gives the memory back.
    void release() noexcept {
        if (data_ != nullptr) resource_->deallocate(data_, capacity_, buffer_alignment);
        data_ = nullptr;
        size_ = capacity_ = 0;
    }

    [[nodiscard]] T* data() noexcept { return data_; }
    [[nodiscard]] const T* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    /// Bytes that it holds.
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::span<T> span() noexcept { return {data_, size_}; }
    [[nodiscard]] std::span<const T> span() const noexcept { return {data_, size_}; }
    T& operator[](std::size_t i) noexcept { return data_[i]; }
    const T& operator[](std::size_t i) const noexcept { return data_[i]; }

    void swap(Buffer& other) noexcept {
        std::swap(resource_, other.resource_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

  private:
    std::pmr::memory_resource* resource_ = std::pmr::new_delete_resource();
    T* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;  // bytes

    static_assert(std::is_trivially_copyable_v<T>, "a Buffer moves its elements as bytes");
};

}  // namespace shardwise::inline SHARDWISE_ABI
