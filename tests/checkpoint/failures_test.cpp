// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// A disk that is full or fails, at each call that makes or changes a file: an error on every rank, and the checkpoint
/// before is there.

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/support.hpp"
#include "shardwise/checkpoint/checkpoint_folder.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"

namespace {

/// What goes wrong.
struct Fault {
    const char* call;   ///< "write" alone, or any of them: ""
    int error;          ///< errno; 0: nothing but that a write is short
    bool half = false;  ///< half of what was to be written is, before it fails
};

std::atomic<int> fails_in{-1};  // so many calls from now; below 0: none does
std::atomic<bool> next_write_fails{false};
Fault fault{"", 0};
std::atomic<int> calls_of[6];  // how often each call has failed
std::atomic<bool> written_to[1024];

enum Call { opens, makes_folder, writes, syncs, closes, renames };

/// Whether it is this call's turn.
bool turn(Call call) {
    if (std::string{fault.call} == "write" && call != writes) return false;
    if (fails_in < 0 || fails_in-- != 0) return false;
    ++calls_of[call];
    return true;
}
bool fails(Call call) {
    if (!turn(call)) return false;
    errno = fault.error;
    return true;
}
template <class Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// In place of the C library's, for all of this program and for the C++ library, which makes folders.
extern "C" {
int open(const char* path, int flags, ...) {
    static auto* const next = real<int(const char*, int, ...)>("open");
    va_list more;
    va_start(more, flags);
    const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(more, unsigned) : 0U;
    va_end(more);
    if (fails(opens)) return -1;
    const int file = next(path, flags, mode);
    if (file >= 0 && file < 1024) written_to[file] = (flags & O_ACCMODE) != O_RDONLY;
    return file;
}
int mkdir(const char* path, mode_t mode) noexcept {
    static auto* const next = real<int(const char*, mode_t)>("mkdir");
    return fails(makes_folder) ? -1 : next(path, mode);
}
ssize_t write(int file, const void* from, size_t bytes) {
    static auto* const next = real<ssize_t(int, const void*, size_t)>("write");
    if (file <= 2) return next(file, from, bytes);
    if (next_write_fails.exchange(false)) {
        errno = fault.error;
        return -1;
    }
    if (!turn(writes)) return next(file, from, bytes);
    if (!fault.half) {
        errno = fault.error;
        return -1;
    }
    next_write_fails = fault.error != 0;
    return next(file, from, (bytes + 1) / 2);
}
int fsync(int file) {
    static auto* const next = real<int(int)>("fsync");
    return fails(syncs) ? -1 : next(file);
}
int close(int file) {
    static auto* const next = real<int(int)>("close");
    const bool counts = file >= 0 && file < 1024 && written_to[file].exchange(false);  // of what is only read none does
    const bool failed = counts && fails(closes);
    const int status = next(file);  // it is closed in either case
    if (failed) errno = fault.error;
    return failed ? -1 : status;
}
int rename(const char* from, const char* to) noexcept {
    static auto* const next = real<int(const char*, const char*)>("rename");
    return fails(renames) ? -1 : next(from, to);
}
}

namespace {

namespace sw = shardwise;
using checkpoint_test::TemporaryFile;
using checkpoint_test::TemporaryFolder;

const std::vector<sw::TableConfig> tables{{.name = "a", .rows = 50, .dim = 4}};

using Save = std::function<void(sw::CommunicatorRef, const sw::Checkpoint&)>;
using Names = std::function<std::set<std::string>()>;

/// Saves step 10, then step 11 again and again, with a fault at each call in turn, until none is met.
/// \param names  of what lies there: nothing new, where the save was for nothing
/// \returns how many calls were met
int at_each_call(const Fault& with, const Save& save, const std::string& path, const Names& names) {
    int met = 0;
    for (int call = 0;; ++call) {
        bool was_met = false;
        std::set<std::string> before;
        sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 3}};
        world.run([&](sw::ThreadCommunicator& comm) {
            sw::EmbeddingLayer<> layer{comm, tables};
            layer.set_steps(10);
            const sw::Checkpoint all{.layer = sw::shards_of(layer), .dense = {}, .numbers = {}, .chunk_bytes = 100};
            save(comm, all);
            layer.set_steps(11);
            sw::barrier(comm);
            if (comm.rank() == 0) {
                before = names();
                fault = with;
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
                was_met = fails_in < 0;
                fails_in = -1;
                next_write_fails = false;
            }
            sw::barrier(comm);
            const bool failed = was_met && with.error != 0 && with.error != EINTR;
            EXPECT_EQ(text.empty(), !failed) << "call " << call << ": " << text;
            EXPECT_TRUE(!failed || text.find(path) != std::string::npos) << text;
            sw::EmbeddingLayer<> other{comm, tables};
            sw::load_layer(comm, path, other);
            // whole, whichever it is: what fails behind the last rename has put it in place
            EXPECT_TRUE(other.steps() == 11 || (failed && other.steps() == 10)) << "call " << call << ": " << text;
            if (comm.rank() == 0 && other.steps() == 10) {
                EXPECT_EQ(names(), before) << "call " << call << ": " << text;
            }
        });
        if (!was_met) return met;
        ++met;
    }
}

std::set<std::string> names_beside(const std::string& path) {
    std::set<std::string> all;
    const std::filesystem::path file{path};
    for (const auto& one : std::filesystem::directory_iterator{file.parent_path().empty() ? "." : file.parent_path()})
        if (const std::string name = one.path().filename().string(); name.starts_with(file.filename().string()))
            all.insert(name);
    return all;
}
std::set<std::string> names_in_folder(const std::string& folder) {
    std::set<std::string> all;
    for (const auto& one : std::filesystem::recursive_directory_iterator{folder})
        all.insert(one.path().string());
    return all;
}

const std::vector<Fault> faults{{"", ENOSPC},         {"", EIO},          {"", EDQUOT},    {"write", ENOSPC, true},
                                {"write", EIO, true}, {"write", 0, true}, {"write", EINTR}};

/// \param expected  calls that a fault of any kind meets, each at least once
void with_every_fault(const Save& save, const std::string& path, const Names& names,
                      const std::vector<Call>& expected) {
    for (auto& calls : calls_of)
        calls = 0;
    for (const Fault& one : faults)
        EXPECT_GE(at_each_call(one, save, path, names), *one.call == '\0' ? 5 : 2);
    for (const Call call : expected)
        EXPECT_GE(calls_of[call], 3) << call;
}

/// A new folder of step 10, or the same one for step 11.
void empty_at_first(sw::CommunicatorRef comm, const sw::Checkpoint& all, const std::string& folder) {
    if (comm.rank() == 0 && all.layer.layer->steps() == 10) std::filesystem::remove_all(folder);
    sw::barrier(comm);
}

TEST(AFailingDisk, LeavesTheFolderAsItWas) {
    const TemporaryFolder folder{"failing_folder"};
    const Save save = [&](sw::CommunicatorRef comm, const sw::Checkpoint& all) {
        empty_at_first(comm, all, folder.path());
        sw::CheckpointFolder{comm, folder.path()}.save(all);
    };
    with_every_fault(save, folder.path(), [&] { return names_in_folder(folder.path()); },
                     {opens, makes_folder, writes, syncs, closes, renames});
}

TEST(AFailingDisk, LeavesTheFolderAsItWasBesideTraining) {
    const TemporaryFolder folder{"failing_beside"};
    const Save save = [&](sw::CommunicatorRef comm, const sw::Checkpoint& all) {
        empty_at_first(comm, all, folder.path());
        sw::CheckpointFolder checkpoints{comm, folder.path()};
        EXPECT_TRUE(checkpoints.start(all));
        checkpoints.finish();
    };
    with_every_fault(save, folder.path(), [&] { return names_in_folder(folder.path()); },
                     {opens, makes_folder, writes, syncs, closes, renames});
}

TEST(AFailingDisk, LeavesTheFileAsItWas) {
    const TemporaryFile file{"failing_file"};
    with_every_fault(
        [&](sw::CommunicatorRef comm, const sw::Checkpoint& all) { sw::save_checkpoint(comm, file.path(), all); },
        file.path(), [&] { return names_beside(file.path()); }, {opens, writes, syncs, closes, renames});
}

/// Where a folder is to be made, with those above it, that can fail, too; then nothing is there, and the next try
/// works.
TEST(AFailingDisk, AFolderThatCannotBeMadeIsAnErrorOnEveryRank) {
    const TemporaryFolder folder{"failing_new"};
    const std::string path = folder.path() + "/one/two";
    for (const int error : {ENOSPC, EIO}) {
        int refused = 0;
        for (int call = 0;; ++call) {
            std::filesystem::remove_all(folder.path());
            std::atomic<int> texts{0};
            bool was_met = false;
            sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 3}};
            world.run([&](sw::ThreadCommunicator& comm) {
                if (comm.rank() == 0) {
                    fault = {"", error};
                    fails_in = call;
                }
                sw::barrier(comm);
                try {
                    sw::CheckpointFolder{comm, path};
                } catch (const sw::BadInput& wrong) {
                    EXPECT_NE(std::string{wrong.what()}.find(path), std::string::npos) << wrong.what();
                    ++texts;
                }
                sw::barrier(comm);
                if (comm.rank() == 0) {
                    was_met = fails_in < 0;
                    fails_in = -1;
                }
                sw::barrier(comm);
                EXPECT_EQ(sw::CheckpointFolder(comm, path).newest(), -1);
            });
            EXPECT_EQ(texts, was_met ? 3 : 0);
            if (!was_met) break;
            ++refused;
        }
        EXPECT_GE(refused, 8);  // three folders made, an open and an fsync of each one's parent, one more to lock it
    }
}

}  // namespace
