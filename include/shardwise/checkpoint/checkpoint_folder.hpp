// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "shardwise/checkpoint/checkpoint.hpp"
#include "shardwise/checkpoint/durable_file.hpp"
#include "shardwise/checkpoint/load_parts.hpp"
#include "shardwise/checkpoint/manifest.hpp"
#include "shardwise/checkpoint/part_file.hpp"
#include "shardwise/checkpoint/snapshot.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// A folder of sharded checkpoints, of which the newest are kept.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Keeps other runs out of a folder for as long as it lives; a process that dies lets go of it.
class FolderLock {
  public:
    /// \throws BadInput where another one has it
    explicit FolderLock(const std::string& folder)
        : number_{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)} {
        if (number_ < 0) throw BadInput{concat({folder, ": cannot be read: ", std::strerror(errno)})};
        if (::flock(number_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return;  // not all file systems have locks
        ::close(number_);
        throw BadInput{concat({folder, ": another run writes its checkpoints there: give this one another folder"})};
    }
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;
    ~FolderLock() { ::close(number_); }

  private:
    int number_;
};

}  // namespace detail

/// Writes sharded checkpoints to a folder, each rank its own part, and keeps the newest. One instance a rank.
///
/// A checkpoint is there once all of its parts and its manifest are on the disk, and not before: whenever a run ends,
/// the newest one in the folder is whole. All ranks see the same folder. `folder`, `written` and `under_way` are not
/// collective, all other calls are.
class CheckpointFolder {
  public:
    /// Makes the folder where there is none. \param keep  so many checkpoints stay, 1 or more
    /// \throws BadInput on every rank for a folder that cannot be made or written to, or that another run writes to
    CheckpointFolder(CommunicatorRef comm, std::string folder, int keep = 2)
        : comm_{comm}, folder_{std::move(folder)}, keep_{keep} {
        if (keep < 1) throw BadInput{concat({"to keep ", keep, " checkpoints: give 1 or more"})};
        while (folder_.size() > 1 && folder_.back() == '/')
            folder_.pop_back();
        detail::all_or_none(comm_, folder_, [&] {
            if (comm_.rank() == 0) make_folder();
        });
    }
    CheckpointFolder(const CheckpointFolder&) = delete;
    CheckpointFolder& operator=(const CheckpointFolder&) = delete;
    ~CheckpointFolder() = default;

    [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
    /// The steps of the newest checkpoint; -1 where there is none.
    [[nodiscard]] std::int64_t newest() {
        std::int64_t steps = -1;
        detail::all_or_none(comm_, folder_, [&] {
            if (comm_.rank() == 0) steps = newest_here();
        });
        broadcast(comm_, 0, std::span{&steps, 1});
        return steps;
    }
    /// Checks that a checkpoint of so many steps may be saved: not where the folder has a later one.
    /// \throws BadInput on every rank
    void require_newest(std::int64_t steps) { require_last(steps, newest()); }

    /// Writes a checkpoint, and returns once it is there. Under replica groups it first syncs the layer's copies.
    /// Memory: `chunk_bytes` where rows do not lie in ascending order, else none.
    /// \throws BadInput on every rank when a file cannot be written, or the folder has a checkpoint of a later step;
    ///         those before are still there then
    void save(const Checkpoint& checkpoint) {
        finish();
        static_cast<void>(begin(checkpoint));
        write(checkpoint);
    }
    /// Copies this rank's part, and writes it while the caller goes on; `finish` makes it a checkpoint. One that is
    /// under way is finished first. Where a host has not memory enough for the copies of all its ranks, it saves.
    /// Cost: two rounds in which ranks agree. \returns whether it is under way, the same on all ranks
    bool start(const Checkpoint& checkpoint) {
        finish();
        if (!begin(checkpoint)) {
            write(checkpoint);
            return false;
        }
        std::shared_ptr<Snapshot> copy;
        try {
            copy = std::make_shared<Snapshot>(checkpoint, comm_.rank() == 0);
        } catch (const std::bad_alloc&) {  // then it is written as it is, at once
        }
        const auto work = [this, copy, here = &checkpoint, steps = steps_of(checkpoint)] {
            return detail::write_part(folder_, part_name(), source_of(copy ? copy->checkpoint() : *here, steps));
        };
        try {
            if (copy) writing_ = std::async(std::launch::async, work);
        } catch (const std::system_error&) {  // no thread is to be had
        }
        if (!writing_.valid()) {
            std::packaged_task<PartInfo()> now{work};
            writing_ = now.get_future();
            now();
        }
        return true;
    }
    /// Whether this rank has written its part of what is under way, or there is nothing.
    [[nodiscard]] bool written() const {
        return !writing_.valid() || writing_.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
    }
    /// Whether a checkpoint is under way; the same on all ranks.
    [[nodiscard]] bool under_way() const noexcept { return writing_.valid(); }
    /// Returns once the checkpoint that is under way is there. \throws BadInput as `save`
    void finish() {
        if (!writing_.valid()) return;
        PartInfo mine;
        const std::string wrong = detail::wrong_with(folder_ + "/" + part_name(), [&] { mine = writing_.get(); });
        complete(mine, wrong);
    }

  private:
    /// On rank 0. The names of all folders that are made are on the disk then.
    void make_folder() {
        namespace fs = std::filesystem;
        std::error_code wrong;
        std::vector<std::string> parents;
        for (fs::path made = fs::absolute(folder_); !fs::exists(made, wrong) && made.has_relative_path();
             made = made.parent_path())
            parents.push_back(made.parent_path().string());
        fs::create_directories(folder_, wrong);
        if (wrong) throw BadInput{concat({folder_, ": cannot be made: ", wrong.message()})};
        for (const std::string& parent : parents)
            sync_folder(parent, folder_);
        if (::access(folder_.c_str(), W_OK | X_OK) != 0)
            throw BadInput{concat({folder_, ": cannot be written to: ", std::strerror(errno)})};
        lock_ = std::make_unique<detail::FolderLock>(folder_);
        remove_unnamed(manifests_in(folder_));  // of runs before, which may have filled the disk
    }
    [[nodiscard]] std::int64_t newest_here() const {
        const auto all = manifests_in(folder_);
        return all.empty() ? -1 : all.rbegin()->first;
    }
    void require_last(std::int64_t steps, std::int64_t there) const {
        if (there > steps)
            throw BadInput{concat({folder_, ": holds a checkpoint of step ", there,
                                   ", behind which nobody would find one of step ", steps,
                                   ": go on from that one, remove it, or give another folder"})};
    }
    [[nodiscard]] static std::optional<std::int64_t> steps_of(const Checkpoint& checkpoint) {
        if (checkpoint.layer.layer == nullptr) return std::nullopt;
        return checkpoint.layer.layer->steps();
    }
    [[nodiscard]] detail::PartSource source_of(const Checkpoint& checkpoint, std::optional<std::int64_t> steps) const {
        return {.checkpoint = &checkpoint, .steps = steps, .first = comm_.rank() == 0};
    }
    [[nodiscard]] std::string part_name() const { return concat({parts_, "/rank-", comm_.rank(), ".safetensors"}); }
    [[nodiscard]] std::string manifest_path() const {
        return folder_ + "/" + detail::step_name(manifest_.steps) + ".json";
    }
    /// Makes the folder of the parts, of a name that no checkpoint has.
    /// \returns whether every host could hold copies of all parts of its ranks; the same on all ranks
    [[nodiscard]] bool begin(const Checkpoint& checkpoint) {
        if (checkpoint.layer.layer != nullptr) static_cast<void>(checkpoint.layer.layer->sync());
        manifest_ = {.steps = steps_of(checkpoint).value_or(0),
                     .optimizer = checkpoint.layer.optimizer,
                     .element_slots = checkpoint.layer.element_slots,
                     .row_slots = checkpoint.layer.row_slots,
                     .tables = {},
                     .parts = {}};
        for (const TableConfig& table : checkpoint.layer.tables)
            manifest_.tables[table.name] = {.rows = table.rows, .dim = table.dim};
        std::int64_t attempt = 0;  // of rank 0
        const auto name = [&] { return concat({detail::step_name(manifest_.steps), ".parts-", attempt}); };
        detail::all_or_none(comm_, folder_, [&] {
            if (const std::string wrong = detail::wrong_tensor(folder_, checkpoint); !wrong.empty())
                throw BadInput{wrong};
            if (comm_.rank() != 0) return;
            require_last(manifest_.steps, newest_here());
            std::error_code wrong;
            for (;; ++attempt) {
                if (std::filesystem::create_directory(folder_ + "/" + name(), wrong)) break;
                if (wrong) throw BadInput{concat({folder_, "/", name(), ": cannot be made: ", wrong.message()})};
            }
            try {
                sync_folder(folder_, folder_);
            } catch (const BadInput&) {
                remove_quietly(folder_ + "/" + name());
                throw;
            }
        });
        const bool room = has_room(Snapshot::bytes_of(checkpoint, comm_.rank() == 0), attempt);
        parts_ = name();
        return room;
    }
    /// Whether all ranks could copy their parts. \param attempt  becomes that of rank 0
    [[nodiscard]] bool has_room(std::int64_t bytes, std::int64_t& attempt) {
        const std::int64_t mine[] = {bytes, available_memory().value_or(0), attempt};
        const auto all = all_gather_v<std::int64_t>(comm_, mine);
        attempt = all.front().at(2);
        const Topology topology = comm_.topology();
        std::map<int, std::int64_t> needed;  // (host)
        for (int rank = 0; rank < comm_.size(); ++rank)
            needed[topology.host_of(rank)] += at(all, rank).at(0);
        bool room = true;
        for (int rank = 0; rank < comm_.size(); ++rank)
            room = room && needed[topology.host_of(rank)] < at(all, rank).at(1) / 5 * 4;
        return room;
    }
    void write(const Checkpoint& checkpoint) {
        PartInfo mine;
        const std::string wrong = detail::wrong_with(folder_ + "/" + part_name(), [&] {
            mine = detail::write_part(folder_, part_name(), source_of(checkpoint, steps_of(checkpoint)));
        });
        complete(mine, wrong);
    }
    /// Puts the manifest in place, once all parts are on the disk, and removes what is too old.
    void complete(const PartInfo& mine, const std::string& wrong) {
        const std::string text = detail::to_json(mine).dump();
        try {
            agree_on_input(comm_, wrong);
        } catch (const BadInput&) {
            if (comm_.rank() == 0) remove_quietly(folder_ + "/" + parts_);
            throw;
        }
        const auto all = gather_v<char>(comm_, 0, text);
        detail::all_or_none(comm_, manifest_path(), [&] {
            if (comm_.rank() != 0) return;
            try {
                for (const auto& theirs : all) {
                    PartInfo part = detail::part_of(nlohmann::json::parse(theirs.begin(), theirs.end()));
                    if (!part.file.empty()) manifest_.parts.push_back(std::move(part));
                }
                sync_folder(folder_ + "/" + parts_, folder_ + "/" + parts_);
                detail::write_manifest(manifest_path(), manifest_);
            } catch (const BadInput&) {
                if (!is_in_place()) remove_quietly(folder_ + "/" + parts_);
                throw;
            }
            remove_old();
        });
    }
    /// Whether the manifest is, though what came behind has failed.
    [[nodiscard]] bool is_in_place() const {
        try {
            return read_manifest(manifest_path()).parts.front().file.starts_with(parts_ + "/");
        } catch (const BadInput&) {
            return false;
        }
    }
    static void remove_quietly(const std::string& path) {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    /// Removes manifests that are too old, and then what no manifest names.
    void remove_old() const {
        auto all = manifests_in(folder_);
        std::error_code wrong;
        while (std::ssize(all) > keep_) {  // its manifest first: what is left is no checkpoint
            std::filesystem::remove(all.begin()->second, wrong);
            if (wrong) return;
            all.erase(all.begin());
        }
        sync_folder(folder_, folder_);
        remove_unnamed(all);
    }
    /// Removes parts that no manifest names, and half a manifest: of runs that ended in the middle.
    void remove_unnamed(const std::map<std::int64_t, std::string>& manifests) const {
        std::set<std::string> named;
        try {
            for (const auto& [steps, path] : manifests)
                for (const PartInfo& part : read_manifest(path).parts)
                    named.insert(part.file.substr(0, part.file.find('/')));
        } catch (const BadInput&) {
            return;  // a manifest that is damaged may be of any of them
        }
        std::vector<std::string> unnamed;
        std::error_code wrong;
        std::filesystem::directory_iterator files{folder_, wrong};
        for (; !wrong && files != std::filesystem::directory_iterator{}; files.increment(wrong)) {
            const std::string name = files->path().filename().string();
            const bool parts = name.find(".parts-") != std::string::npos && !named.contains(name);
            if (name.starts_with("step-") && (parts || name.ends_with(".json.partial")))
                unnamed.push_back(files->path().string());
        }
        for (const std::string& path : unnamed)
            remove_quietly(path);
    }

    CommunicatorRef comm_;
    std::string folder_;
    int keep_;
    std::unique_ptr<detail::FolderLock> lock_;  // on rank 0
    Manifest manifest_;                         // of what is under way, without its parts
    std::string parts_;                         // the folder of these, in `folder_`
    std::future<PartInfo> writing_;             // this rank's part
};

}  // namespace shardwise::inline SHARDWISE_ABI
