// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/core/buffer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>

namespace shardwise_test {
namespace {

using shardwise::Buffer;
using shardwise::buffer_alignment;
using shardwise::buffer_capacity;
using shardwise::huge_page_bytes;
using shardwise::HugePageResource;
using shardwise::MemoryAccount;

std::size_t misalignment(const void* memory, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(memory) % alignment;
}

TEST(BufferCapacity, SmallSizesGrowByTheAlignment) {
    EXPECT_EQ(buffer_capacity(0), 0U);
    EXPECT_EQ(buffer_capacity(1), 64U);
    EXPECT_EQ(buffer_capacity(64), 64U);
    EXPECT_EQ(buffer_capacity(65), 128U);
    EXPECT_EQ(buffer_capacity(1023), 1024U);
}

TEST(BufferCapacity, LargeSizesGrowByAnEighthOfAPowerOfTwo) {
    EXPECT_EQ(buffer_capacity(1024), 1024U);
    EXPECT_EQ(buffer_capacity(1025), 1152U);
    EXPECT_EQ(buffer_capacity(1153), 1280U);
    EXPECT_EQ(buffer_capacity(std::size_t{1} << 30), std::size_t{1} << 30);
    EXPECT_EQ(buffer_capacity((std::size_t{1} << 30) + 1), (std::size_t{1} << 30) + (std::size_t{1} << 27));
}

RC_GTEST_PROP(BufferCapacity, HoldsTheBytesWastesLittleAndIsItsOwnCapacity, ()) {
    const auto bytes = *rc::gen::inRange<std::size_t>(1, std::size_t{1} << *rc::gen::inRange(1, 40));
    const std::size_t capacity = buffer_capacity(bytes);
    RC_ASSERT(capacity >= bytes);
    RC_ASSERT(capacity % buffer_alignment == 0U);
    RC_ASSERT(capacity - bytes < std::max(buffer_alignment, bytes / 8 + 1));
    RC_ASSERT(buffer_capacity(capacity) == capacity);
    RC_ASSERT(buffer_capacity(bytes + 1) >= capacity);
}

TEST(BufferTest, OfMoreBytesThanThereAreIsRefused) {
    Buffer<float> buffer;
    buffer.resize(3);
    buffer[2] = 7.0F;
    EXPECT_THROW(buffer.resize((std::size_t{1} << 62) + 1), std::bad_alloc);  // 4 bytes, where the product wraps around
    EXPECT_THROW(buffer.assign_zero(SIZE_MAX), std::bad_alloc);
    EXPECT_EQ(buffer.size(), 3U);
    EXPECT_EQ(buffer[2], 7.0F);
}

TEST(HugePageResourceTest, AlignsSmallBlocksToALineAndLargeOnesToHugePages) {
    HugePageResource resource;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, huge_page_bytes - 1}) {
        void* memory = resource.allocate(bytes, 1);
        EXPECT_EQ(misalignment(memory, buffer_alignment), 0U);
        resource.deallocate(memory, bytes, 1);
    }
    for (const std::size_t bytes : {huge_page_bytes, 3 * huge_page_bytes + 5}) {
        void* memory = resource.allocate(bytes, 8);
        EXPECT_EQ(misalignment(memory, huge_page_bytes), 0U);
        resource.deallocate(memory, bytes, 8);
    }
    EXPECT_TRUE(resource.is_equal(HugePageResource{}));
    EXPECT_FALSE(resource.is_equal(*std::pmr::new_delete_resource()));
}

/// The flags of the mapping that `memory` lies in, as /proc/self/smaps has them ("hg": huge pages were advised).
std::string mapping_flags(const void* memory) {
    std::ifstream maps{"/proc/self/smaps"};
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    bool inside = false;
    for (std::string line; std::getline(maps, line);) {
        unsigned long long first = 0;
        unsigned long long end = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx ", &first, &end) == 2) inside = first <= address && address < end;
        if (inside && line.starts_with("VmFlags:")) return line;
    }
    return "";
}

TEST(HugePageResourceTest, AsksForHugePagesWhereLarge) {
    HugePageResource resource;
    void* memory = resource.allocate(4 * huge_page_bytes, 64);
    const std::string flags = mapping_flags(memory);
    resource.deallocate(memory, 4 * huge_page_bytes, 64);
    if (flags.empty()) GTEST_SKIP() << "this kernel tells no flags of mappings";
    EXPECT_NE(flags.find(" hg"), std::string::npos) << flags;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // GCC's
#define SHARDWISE_TEST_SANITIZED
#elif defined(__has_feature)  // Clang's
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARDWISE_TEST_SANITIZED
#endif
#endif

/// How many 4 KiB pages of a block are in memory.
std::size_t pages_in_memory(void* block, std::size_t bytes) {
    std::vector<unsigned char> in(bytes / 4096);
    if (mincore(block, bytes, in.data()) != 0) throw std::runtime_error{"mincore does not know this memory"};
    return static_cast<std::size_t>(std::count_if(in.begin(), in.end(), [](unsigned char page) { return page & 1U; }));
}

TEST(HugePageResourceTest, HasNoSmallPagesOfWhoeverUsedTheMemoryBefore) {
#if defined(SHARDWISE_TEST_SANITIZED)
    GTEST_SKIP() << "a sanitizer's heap gives memory back to the kernel itself, or out again later";
#endif
    // A large block that is given back makes later ones that are smaller come out of the heap.
    constexpr std::size_t large = 8 * huge_page_bytes;
    ::operator delete (::operator new (large, std::align_val_t{huge_page_bytes}), std::align_val_t{huge_page_bytes});
    constexpr std::size_t bytes = 2 * huge_page_bytes;
    void* before = ::operator new (bytes, std::align_val_t{huge_page_bytes});
    std::memset(before, 1, bytes);
    const auto where = reinterpret_cast<std::uintptr_t>(before);
    ::operator delete (before, std::align_val_t{huge_page_bytes});
    HugePageResource resource;
    void* memory = resource.allocate(bytes, 64);
    const bool same = reinterpret_cast<std::uintptr_t>(memory) == where;
    const std::size_t pages = pages_in_memory(memory, bytes);
    resource.deallocate(memory, bytes, 64);
    EXPECT_TRUE(same) << "the heap gave other memory: nothing is shown";
    EXPECT_EQ(pages, 0U);
}

TEST(MemoryAccountTest, CountsTablesAndWorkApartAndTheirPeakTogether) {
    MemoryAccount account;
    EXPECT_EQ(account.peak_bytes(), 0);
    Buffer<float> table{account.tables(), 100};  // 400 bytes
    EXPECT_EQ(account.static_bytes(), 448);
    EXPECT_EQ(account.dynamic_bytes(), 0);
    {
        const Buffer<std::byte> work{account.work(), 1025};
        EXPECT_EQ(account.dynamic_bytes(), 1152);
        EXPECT_EQ(account.peak_bytes(), 448 + 1152);
    }
    EXPECT_EQ(account.dynamic_bytes(), 0);
    EXPECT_EQ(account.peak_bytes(), 448 + 1152);
    EXPECT_EQ(account.allocations(), 2);
    table.release();
    EXPECT_EQ(account.static_bytes(), 0);
    const Buffer<std::byte> small{account.work(), 64};
    EXPECT_EQ(account.peak_bytes(), 448 + 1152);
    EXPECT_EQ(account.allocations(), 3);
}

TEST(MemoryAccountTest, CountsFromSeveralThreads) {
    MemoryAccount account;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&account, t] {
            auto& resource = t % 2 == 0 ? account.tables() : account.work();
            for (int i = 0; i < 500; ++i)
                Buffer<char>{resource, static_cast<std::size_t>(1 + i % 7 * 64)};
        });
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(account.static_bytes() + account.dynamic_bytes(), 0);
    EXPECT_EQ(account.allocations(), 2000);
    EXPECT_GE(account.peak_bytes(), 7 * 64);
    EXPECT_LE(account.peak_bytes(), 4 * 7 * 64);
}

TEST(BufferTest, KeepsItsMemoryAsLongAsItSuffices) {
    MemoryAccount account;
    Buffer<std::int32_t> buffer{account.work(), 16};
    const auto* memory = buffer.data();
    buffer.resize(3);
    EXPECT_EQ(buffer.size(), 3U);
    buffer.resize(16);
    EXPECT_EQ(buffer.data(), memory);
    EXPECT_EQ(account.allocations(), 1);
    buffer.resize(17);
    EXPECT_EQ(account.allocations(), 2);
    EXPECT_EQ(account.dynamic_bytes(), 128);
    EXPECT_EQ(misalignment(buffer.data(), buffer_alignment), 0U);
}

TEST(BufferTest, NothingIsAllocatedForNothing) {
    MemoryAccount account;
    Buffer<double> buffer{account.work(), 0};
    EXPECT_TRUE(buffer.empty());
    EXPECT_EQ(buffer.assign_zero(0).size(), 0U);
    EXPECT_EQ(account.allocations(), 0);
}

TEST(BufferTest, AssignZeroZeroesWhatWasThere) {
    Buffer<std::int32_t> buffer;
    for (std::int32_t& value : buffer.resize(40))
        value = 7;
    for (const std::int32_t value : buffer.assign_zero(30))
        EXPECT_EQ(value, 0);
    EXPECT_EQ(buffer.size(), 30U);
}

TEST(BufferTest, MovesWithItsResourceAndLeavesNothingBehind) {
    MemoryAccount account;
    Buffer<int> from{account.work(), 4};
    from[2] = 42;
    const int* memory = from.data();
    Buffer<int> to{std::move(from)};
    EXPECT_EQ(to.data(), memory);
    EXPECT_EQ(to[2], 42);
    EXPECT_EQ(from.data(), nullptr);  // NOLINT(bugprone-use-after-move): a moved-from buffer is empty
    EXPECT_EQ(from.size(), 0U);

    Buffer<int> other{account.tables(), 1000};
    other = std::move(to);
    EXPECT_EQ(other.data(), memory);
    EXPECT_EQ(account.static_bytes(), 0);  // what `other` held is gone
    EXPECT_EQ(account.dynamic_bytes(), 64);
    EXPECT_EQ(account.allocations(), 2);
    other.resize(1000);  // still where it came from
    EXPECT_EQ(account.static_bytes(), 0);
    EXPECT_EQ(account.dynamic_bytes(), static_cast<std::int64_t>(buffer_capacity(4000)));
}

TEST(BufferTest, OnlyAnEmptyBufferChangesItsResource) {
    MemoryAccount account;
    Buffer<int> buffer;
    buffer.on(account.tables()).resize(1);
    buffer.on(account.work()).resize(2);
    EXPECT_EQ(account.static_bytes(), 64);
    EXPECT_EQ(account.dynamic_bytes(), 0);
    buffer.release();
    buffer.on(account.work()).resize(2);
    EXPECT_EQ(account.static_bytes(), 0);
    EXPECT_EQ(account.dynamic_bytes(), 64);
}

RC_GTEST_PROP(BufferTest, AnySizesInAnyOrderAreCountedAndGivenBack, (const std::vector<std::uint16_t>& sizes)) {
    MemoryAccount account;
    std::int64_t peak = 0;
    {
        Buffer<std::uint16_t> buffer{account.work()};
        std::size_t most = 0;
        for (const std::uint16_t size : sizes) {
            const auto span = buffer.resize(size);
            RC_ASSERT(span.size() == size);
            if (size != 0) span.front() = span.back() = size;
            most = std::max(most, std::size_t{size});
            const auto held = static_cast<std::size_t>(account.dynamic_bytes());
            RC_ASSERT(held >= 2 * most);
            RC_ASSERT(held <= buffer_capacity(2 * most));
            peak = std::max(peak, account.dynamic_bytes());
        }
    }
    RC_ASSERT(account.dynamic_bytes() == 0);
    RC_ASSERT(account.peak_bytes() == peak);
}

}  // namespace
}  // namespace shardwise_test
