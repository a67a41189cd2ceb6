// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/comm/mpi_environment.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"

/// \file
/// Messages on their way over MPI: the part of MpiCommunicator that calls MPI.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// Takes a record from the list of free ones, or makes one. A Record has `next`.
template <class Record>
std::uint32_t take_record(std::vector<Record>& records, std::uint32_t& free) {
    if (free == Record::none) {
        records.emplace_back();
        return static_cast<std::uint32_t>(records.size() - 1);
    }
    const std::uint32_t index = free;
    free = records[index].next;
    records[index].next = Record::none;
    return index;
}

/// One message that leaves or arrives.
struct MpiMessage {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    std::uint32_t round = none;
    std::uint32_t next = none;  // in the queue of its peer, or in the list of free ones
    int peer = 0;
    int tag = 0;
    bool moving = false;                // a chunk is with MPI
    bool ended = false;                 // the last chunk was handed to MPI
    bool posted = false;                // arriving: MPI was told where it goes before it came
    bool unmeasured = false;            // arriving: at least `moved` bytes came, who knows how many
    bool foreign = false;               // arriving: came under another tag, so it is of another step
    std::int64_t size = 0;              // to send, or expected
    std::int64_t moved = 0;             // bytes handed to MPI so far, or room for them
    const std::byte* data = nullptr;    // leaving
    Buffer<std::byte>* into = nullptr;  // arriving
    std::vector<std::byte> spill;       // arriving: what does not fit, or has no known size yet

    [[nodiscard]] bool leaving() const noexcept { return into == nullptr; }
    [[nodiscard]] bool any_size() const noexcept { return size == InMessage::any_size; }
    [[nodiscard]] bool wrong_size() const noexcept { return !any_size() && moved != size; }
};

/// Moves messages by MPI_Isend, MPI_Iprobe and MPI_Irecv. Records are pooled.
///
/// The tag is the number of the message on its ordered pair and, where MPI has tags enough, a hash of its step and
/// flight: what a rank in another call sends is known from it. A message of known size, less than a chunk, is received
/// ahead, under its tag; one of another step that comes in its place is looked for while nothing moves. All others are
/// probed for: each peer has a queue of them, of which only the oldest is looked for, since MPI keeps the order of a
/// pair. Only one thread receives on this communicator, so that what a probe saw is what the receive gets.
class MpiMessages {
  public:
    MpiMessages(MPI_Comm comm, int ranks, std::int64_t chunk_bytes)
        : comm_{comm}, chunk_{chunk_bytes}, peers_(static_cast<std::size_t>(ranks)) {
        void* bound = nullptr;
        int found = 0;
        mpi_check(MPI_Comm_get_attr(comm_, MPI_TAG_UB, &bound, &found), "MPI_Comm_get_attr");
        if (found != 0) tags_ = std::uint64_t{1} + static_cast<std::uint64_t>(*static_cast<int*>(bound));
    }

    /// What tells the messages of one step and flight from all others in their tags.
    [[nodiscard]] static std::uint64_t mark(const Label& label) noexcept {
        return Digest{}.add(std::string_view{label.step}).add(std::int64_t{label.flight}).bits16() % marks;
    }
    void send(std::uint32_t round, std::uint64_t mark, int to, std::span<const std::byte> bytes) {
        const MpiTurn turn;
        const std::uint32_t at = add(round, mark, to, peers_.at(static_cast<std::size_t>(to)).sent++);
        MpiMessage& message = messages_[at];
        message.size = static_cast<std::int64_t>(bytes.size());
        message.data = bytes.data();
        message.into = nullptr;
        requests_.push_back(MPI_REQUEST_NULL);
        request_messages_.push_back(at);
        send_chunk(message, requests_.back());
    }
    void expect(std::uint32_t round, std::uint64_t mark, const InMessage& in) {
        const MpiTurn turn;
        Peer& peer = peers_.at(static_cast<std::size_t>(in.from));
        const std::uint32_t at = add(round, mark, in.from, peer.received++);
        MpiMessage& message = messages_[at];
        message.size = in.expected;
        message.into = in.into;
        if (!message.any_size() && message.size < chunk_) {
            message.posted = message.ended = true;
            requests_.push_back(MPI_REQUEST_NULL);
            request_messages_.push_back(at);
            receive(message, message.size, requests_.back());
            return;
        }
        (peer.last == none ? peer.first : messages_[peer.last].next) = at;
        peer.last = at;
        ++awaited_;
    }

    /// Makes progress on everything; calls `done(message)` for each message that is complete.
    /// \returns whether anything moved
    template <class Done>
    bool progress(const Done& done) {
        const MpiTurn turn;
        const bool arrivals = progress_arrivals();
        if (progress_requests(done) || arrivals) return true;
        return marked() && ++idle_ % foreign_every == 0 && receive_foreign();
    }
    /// As progress, but takes up nothing new that arrives.
    template <class Done>
    bool progress_requests(const Done& done);
    /// Takes back all receives whose message has not come: once progress_requests was called, MPI knows nothing of
    /// their memory any more.
    void withdraw() {
        const MpiTurn turn;
        for (std::size_t slot = 0; slot < requests_.size(); ++slot)
            if (ahead(slot)) mpi_check(MPI_Cancel(&requests_[slot]), "MPI_Cancel");
    }
    /// Whether MPI reads or writes memory of some message, or may do so.
    [[nodiscard]] bool busy() const noexcept { return !requests_.empty(); }
    /// Whether MPI has a message that it may move piece by piece, a piece or so a poll.
    [[nodiscard]] bool long_under_way() const noexcept {
        return std::any_of(request_messages_.begin(), request_messages_.end(), [this](std::uint32_t at) {
            const MpiMessage& message = messages_[at];
            return message.any_size() || message.size > long_bytes;
        });
    }

    /// Calls `see(message)` for all that are not complete.
    template <class See>
    void for_each(const See& see) const {
        for (const std::uint32_t at : request_messages_)
            see(messages_[at]);
        for (const Peer& peer : peers_)
            for (std::uint32_t at = peer.first; at != none; at = messages_[at].next)
                if (!messages_[at].moving) see(messages_[at]);
    }

  private:
    static constexpr std::uint32_t none = MpiMessage::none;
    static constexpr std::uint64_t numbers = 1U << 16U;
    static constexpr std::uint64_t marks = 1U << 15U;
    static constexpr std::uint32_t foreign_every = 64;  // polls of nothing
    static constexpr std::int64_t long_bytes = 16384;

    struct Peer {
        std::uint64_t sent = 0;  // messages so far
        std::uint64_t received = 0;
        std::uint32_t first = none;  // messages that are probed for, and whose last chunk has not come; oldest first
        std::uint32_t last = none;
    };

    /// Whether MPI has tags enough for marks.
    [[nodiscard]] bool marked() const noexcept { return tags_ >= marks * numbers; }
    std::uint32_t add(std::uint32_t round, std::uint64_t mark, int peer, std::uint64_t number) {
        const std::uint32_t at = take_record(messages_, free_);
        MpiMessage& message = messages_[at];
        message.round = round;
        message.peer = peer;
        message.tag = static_cast<int>(marked() ? mark * numbers + number % numbers : number % tags_);
        message.moving = message.ended = message.posted = message.unmeasured = message.foreign = false;
        message.moved = 0;
        if (requests_.capacity() < messages_.size()) {
            requests_.reserve(messages_.capacity());
            request_messages_.reserve(messages_.capacity());
            completed_.reserve(messages_.capacity());
            statuses_.reserve(messages_.capacity());
        }
        return at;
    }

    void send_chunk(MpiMessage& message, MPI_Request& request) {
        const std::int64_t count = std::min(chunk_, message.size - message.moved);
        mpi_check(MPI_Isend(message.data + message.moved, static_cast<int>(count), MPI_BYTE, message.peer, message.tag,
                            comm_, &request),
                  "MPI_Isend");
        message.moving = true;
        message.moved += count;
        message.ended = count < chunk_;
    }

    [[nodiscard]] static std::uint64_t number_in(int tag) noexcept { return static_cast<std::uint64_t>(tag) % numbers; }
    static std::int64_t count_of(const MPI_Status& status) {
        int count = 0;
        mpi_check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
        return count;
    }
    void receive(MpiMessage& message, std::int64_t count, MPI_Request& request) {
        mpi_check(MPI_Irecv(room(message, count), static_cast<int>(count), MPI_BYTE, message.peer, message.tag, comm_,
                            &request),
                  "MPI_Irecv");
        message.moving = true;
        message.moved += count;
    }
    /// Whether this request receives ahead.
    [[nodiscard]] bool ahead(std::size_t slot) const {
        return messages_[request_messages_[slot]].posted && requests_[slot] != MPI_REQUEST_NULL;
    }
    /// What came instead of what was received ahead. Marked tags only. \returns whether there was such a thing
    bool receive_foreign() {
        bool any = false;
        for (std::size_t slot = 0; slot < requests_.size(); ++slot) {
            MpiMessage& message = messages_[request_messages_[slot]];
            if (!ahead(slot)) continue;
            int found = 0;
            MPI_Status status{};
            mpi_check(MPI_Iprobe(message.peer, MPI_ANY_TAG, comm_, &found, &status), "MPI_Iprobe");
            if (found == 0 || status.MPI_TAG == message.tag || number_in(status.MPI_TAG) != number_in(message.tag))
                continue;
            mpi_check(MPI_Cancel(&requests_[slot]), "MPI_Cancel");
            mpi_check(MPI_Wait(&requests_[slot], MPI_STATUS_IGNORE), "MPI_Wait");
            message.posted = false;
            message.foreign = any = true;
            message.tag = status.MPI_TAG;
            message.moved = 0;
            message.unmeasured = count_of(status) == chunk_;
            receive(message, count_of(status), requests_[slot]);
        }
        return any;
    }

    /// Where the next `count` bytes of an arriving message go.
    std::byte* room(MpiMessage& message, std::int64_t count) const {
        if (message.any_size() && message.moved == 0 && count < chunk_)
            return message.into->resize(static_cast<std::size_t>(count)).data();
        if (!message.any_size() && message.moved + count <= message.size) {
            if (message.moved == 0) message.into->resize(static_cast<std::size_t>(message.size));
            return message.into->data() + message.moved;
        }
        const std::int64_t kept = message.any_size() ? message.moved : 0;  // what is too much is only counted
        message.spill.resize(static_cast<std::size_t>(kept + count));
        return message.spill.data() + kept;
    }
    static void empty_spill(MpiMessage& message) {
        if (message.spill.empty()) return;
        if (message.any_size())
            std::memcpy(message.into->resize(message.spill.size()).data(), message.spill.data(), message.spill.size());
        std::vector<std::byte>{}.swap(message.spill);
    }

    /// What was received ahead has come: learns its size from MPI.
    void measure(std::uint32_t at, const MPI_Status& status, bool truncated) {
        MpiMessage& message = messages_[at];
        message.posted = false;
        message.moved = count_of(status);
        if (!truncated) return;
        if (message.moved == chunk_) {  // and more to come
            Peer& peer = peers_[static_cast<std::size_t>(message.peer)];
            message.ended = false;
            message.next = peer.first;
            peer.first = at;
            if (peer.last == none) peer.last = at;
            ++awaited_;
        }
        message.unmeasured = message.moved <= message.size;
        if (message.unmeasured) message.moved = message.size + 1;
    }

    bool progress_arrivals() {
        if (awaited_ == 0) return false;
        int any = 0;
        mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &any, MPI_STATUS_IGNORE), "MPI_Iprobe");
        if (any == 0) return false;
        bool moved = false;
        for (Peer& peer : peers_)
            while (peer.first != none && !messages_[peer.first].moving && receive_chunk(peer))
                moved = true;
        return moved;
    }
    bool receive_chunk(Peer& peer) {
        const std::uint32_t at = peer.first;
        MpiMessage& message = messages_[at];
        int found = 0;
        MPI_Status status{};
        mpi_check(MPI_Iprobe(message.peer, message.tag, comm_, &found, &status), "MPI_Iprobe");
        if (found == 0 && marked() && message.moved == 0) {
            mpi_check(MPI_Iprobe(message.peer, MPI_ANY_TAG, comm_, &found, &status), "MPI_Iprobe");
            // a later message may overtake the chunks of an earlier one, but this number belongs to this message alone
            if (found == 0 || number_in(status.MPI_TAG) != number_in(message.tag)) return false;
            message.foreign = status.MPI_TAG != message.tag;
            message.tag = status.MPI_TAG;
        }
        if (found == 0) return false;
        const std::int64_t count = count_of(status);
        requests_.push_back(MPI_REQUEST_NULL);
        request_messages_.push_back(at);
        receive(message, count, requests_.back());
        message.ended = count < chunk_;
        if (message.ended) {
            peer.first = message.next;
            if (peer.first == none) peer.last = none;
            message.next = none;
            --awaited_;
        }
        return true;
    }

    MPI_Comm comm_;
    std::int64_t chunk_;
    std::uint64_t tags_ = 32768;  // how many there are; the least that MPI promises
    std::vector<Peer> peers_;
    std::vector<MpiMessage> messages_;
    std::uint32_t free_ = none;
    std::int64_t awaited_ = 0;  // messages that are probed for, and whose last chunk has not come
    std::uint32_t idle_ = 0;    // polls at which nothing moved
    std::vector<MPI_Request> requests_;
    std::vector<std::uint32_t> request_messages_;  // of which message each request is
    std::vector<int> completed_;
    std::vector<MPI_Status> statuses_;
};

template <class Done>
bool MpiMessages::progress_requests(const Done& done) {
    if (requests_.empty()) return false;
    const MpiTurn turn;
    completed_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int count = 0;
    const int code =
        MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(), statuses_.data());
    if (code != MPI_ERR_IN_STATUS) mpi_check(code, "MPI_Testsome");
    if (count == MPI_UNDEFINED || count == 0) return false;
    int failed = MPI_SUCCESS;  // the first error; the others' requests are accounted for all the same
    for (int i = 0; i < count; ++i) {
        const auto slot = static_cast<std::size_t>(completed_[static_cast<std::size_t>(i)]);
        const std::uint32_t at = request_messages_[slot];
        MpiMessage& message = messages_[at];
        const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
        const int error = code == MPI_ERR_IN_STATUS ? status.MPI_ERROR : MPI_SUCCESS;
        int kind = MPI_SUCCESS;
        if (error != MPI_SUCCESS) MPI_Error_class(error, &kind);
        const bool truncated = message.posted && kind == MPI_ERR_TRUNCATE;
        if (error != MPI_SUCCESS) requests_[slot] = MPI_REQUEST_NULL;
        if (error != MPI_SUCCESS && !truncated) {
            if (failed == MPI_SUCCESS) failed = error;
            continue;
        }
        message.moving = false;
        if (message.posted) measure(at, status, truncated);
        if (!message.ended) {
            if (message.leaving()) send_chunk(message, requests_[slot]);
            continue;
        }
        if (!message.leaving()) empty_spill(message);
        done(message);
        message.next = free_;
        free_ = at;
    }
    std::size_t kept = 0;
    for (std::size_t slot = 0; slot < requests_.size(); ++slot) {
        if (requests_[slot] == MPI_REQUEST_NULL) continue;
        requests_[kept] = requests_[slot];
        request_messages_[kept++] = request_messages_[slot];
    }
    requests_.resize(kept);
    request_messages_.resize(kept);
    mpi_check(failed, "MPI_Testsome");
    return true;
}

}  // namespace shardwise::inline SHARDWISE_ABI::detail
