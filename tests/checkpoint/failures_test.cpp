// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// A disk that is full or fails, at each call that writes: an error on every rank, and the checkpoint before is there.

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "checkpoint/support.hpp"
#include "shardwise/checkpoint/checkpoint_folder.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"

namespace {

std::atomic<int> fails_in{-1};  // so many calls from now; below 0: none does
int fails_with = 0;

bool fails() {
    if (fails_in < 0 || fails_in-- != 0) return false;
    errno = fails_with;
    return true;
}
template <class Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// In place of the C library's, for all of this program.
extern "C" {
ssize_t write(int file, const void* from, size_t bytes) {
    static auto* const next = real<ssize_t(int, const void*, size_t)>("write");
    return file > 2 && fails() ? -1 : next(file, from, bytes);
}
int fsync(int file) {
    static auto* const next = real<int(int)>("fsync");
    return fails() ? -1 : next(file);
}
int rename(const char* from, const char* to) noexcept {
    static auto* const next = real<int(const char*, const char*)>("rename");
    return fails() ? -1 : next(from, to);
}
}

namespace {

namespace sw = shardwise;
using checkpoint_test::TemporaryFile;
using checkpoint_test::TemporaryFolder;

const std::vector<sw::TableConfig> tables{{.name = "a", .rows = 50, .dim = 4}};

template <class Save>
void at_each_call(Save save, const std::string& path) {
    for (const int error : {ENOSPC, EIO, EDQUOT}) {
        int refused = 0;
        for (int call = 0;; ++call) {
            bool failed = false;
            sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 3}};
            world.run([&](sw::ThreadCommunicator& comm) {
                sw::EmbeddingLayer<> layer{comm, tables};
                layer.set_steps(10);
                const sw::Checkpoint all{.layer = sw::shards_of(layer), .dense = {}, .numbers = {}, .chunk_bytes = 100};
                save(comm, all);
                layer.set_steps(11);
                sw::barrier(comm);
                if (comm.rank() == 0) {
                    fails_with = error;
                    fails_in = call;
                }
                sw::barrier(comm);
                std::string text;
                try {
                    save(comm, all);
                } catch (const sw::BadInput& wrong) {
                    text = wrong.what();
                }
                sw::barrier(comm);
                if (comm.rank() == 0) {
                    failed = fails_in < 0;
                    fails_in = -1;
                }
                sw::barrier(comm);
                EXPECT_EQ(text.empty(), !failed) << "call " << call << ": " << text;
                EXPECT_TRUE(!failed || text.find(path) != std::string::npos) << text;
                sw::EmbeddingLayer<> other{comm, tables};
                sw::load_layer(comm, path, other);
                // whole, whichever it is: what fails behind the last rename has put it in place
                EXPECT_TRUE(other.steps() == 11 || (failed && other.steps() == 10)) << "call " << call << ": " << text;
            });
            if (!failed) break;
            ++refused;
        }
        EXPECT_GT(refused, 5);
    }
}

TEST(AFailingDisk, LeavesTheFolderAsItWas) {
    const TemporaryFolder folder{"failing_folder"};
    at_each_call(
        [&](sw::CommunicatorRef comm, const sw::Checkpoint& all) {
            if (comm.rank() == 0 && all.layer.layer->steps() == 10) std::filesystem::remove_all(folder.path());
            sw::barrier(comm);
            sw::CheckpointFolder{comm, folder.path()}.save(all);
        },
        folder.path());
}

TEST(AFailingDisk, LeavesTheFileAsItWas) {
    const TemporaryFile file{"failing_file"};
    at_each_call(
        [&](sw::CommunicatorRef comm, const sw::Checkpoint& all) { sw::save_checkpoint(comm, file.path(), all); },
        file.path());
}

}  // namespace
