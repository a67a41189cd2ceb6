// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/batch.hpp"

/// \file
/// Reads batches ahead of their use, on a thread of its own.

namespace shardwise::inline SHARDWISE_ABI {

/// Fills batches one after the other: `next` returns false at the end, `rewind` goes back to the beginning.
template <class Source, class Batch = ClickBatch>
concept BatchSource = requires(Source& source, Batch& batch) {
    { source.next(batch) } -> std::same_as<bool>;
    source.rewind();
};

/// Reads batches of a source ahead, in the background, into a ring of batches that are used again and again.
///
/// One thread calls its methods; the source is only ever used by the loader's own thread.
/// \tparam Source  owned by the loader, or a reference to one that outlives it
template <class Source, class Batch = ClickBatch>
    requires BatchSource<Source, Batch> && std::default_initializable<Batch>
class PrefetchingLoader {
  public:
    /// Starts reading. \param ahead batches read ahead of the one that the caller has, at least 1 \throws BadInput
    explicit PrefetchingLoader(Source source, int ahead = 4) : source_{std::forward<Source>(source)} {
        if (ahead < 1) throw BadInput{concat({ahead, " batches ahead: give at least 1"})};
        ring_.resize(static_cast<std::size_t>(ahead) + 1);
        thread_ = std::thread{[this] { read(); }};
    }
    PrefetchingLoader(const PrefetchingLoader&) = delete;
    PrefetchingLoader& operator=(const PrefetchingLoader&) = delete;
    /// Ends at any moment; waits for the batch that is being read.
    ~PrefetchingLoader() {
        {
            const std::lock_guard lock{mutex_};
            stop_ = true;
        }
        work_.notify_one();
        thread_.join();
    }

    /// The next batch, valid until next() or rewind() is called; null at the end, until rewind().
    /// \throws what the source threw, after the batches that came before it; the same again until rewind()
    [[nodiscard]] const Batch* next() {
        std::unique_lock lock{mutex_};
        if (std::exchange(lent_, false)) {
            ++released_;
            // A thread that wakes up where the lock is held goes to sleep again.
            lock.unlock();
            work_.notify_one();
            lock.lock();
        }
        const auto ready = [&] { return !rewind_ && (finished_ || released_ != produced_); };
        if (!ready()) {
            const auto start = std::chrono::steady_clock::now();
            ready_.wait(lock, ready);
            waited_ += std::chrono::steady_clock::now() - start;
        }
        if (released_ != produced_) {
            lent_ = true;
            return &ring_[slot(released_)];
        }
        if (failure_) std::rethrow_exception(failure_);
        return nullptr;
    }

    /// Back to the source's beginning; batches read ahead are dropped. What the source throws then, next() throws.
    void rewind() {
        const std::lock_guard lock{mutex_};
        rewind_ = true;
        lent_ = false;
        work_.notify_one();
    }

    /// Time that next() waited for batches, since the loader was made.
    [[nodiscard]] std::chrono::nanoseconds waited() const noexcept { return waited_; }

  private:
    [[nodiscard]] std::size_t slot(std::uint64_t number) const noexcept {
        return static_cast<std::size_t>(number % ring_.size());
    }

    // Linux lets a thread that wakes up take the core of the one that woke it, here the one that trains. Not this one:
    // what it reads is for later.
    static void stay_in_the_background() noexcept {
#ifdef SCHED_BATCH
        int policy = 0;
        ::sched_param parameters{};
        if (::pthread_getschedparam(::pthread_self(), &policy, &parameters) == 0 && policy == SCHED_OTHER)
            static_cast<void>(::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &parameters));
#endif
    }

    void read() {
        stay_in_the_background();
        std::unique_lock lock{mutex_};
        for (;;) {
            work_.wait(lock, [&] { return stop_ || rewind_ || (!finished_ && produced_ - released_ < ring_.size()); });
            if (stop_) return;
            const bool again = std::exchange(rewind_, false);
            if (again) {
                produced_ = released_ = 0;
                finished_ = false;
                failure_ = nullptr;
            }
            Batch& batch = ring_[slot(produced_)];
            lock.unlock();
            bool more = false;
            std::exception_ptr failure;
            try {
                if (again) source_.rewind();
                more = source_.next(batch);
            } catch (...) {
                failure = std::current_exception();
            }
            lock.lock();
            if (more) {
                ++produced_;
            } else {
                finished_ = true;
                failure_ = std::move(failure);
            }
            ready_.notify_one();
        }
    }

    Source source_;
    std::vector<Batch> ring_;
    std::chrono::nanoseconds waited_{0};

    std::mutex mutex_;               // guards what follows
    std::condition_variable work_;   // for the loader's thread
    std::condition_variable ready_;  // for the caller
    std::uint64_t produced_ = 0;     // batches of this pass that are filled
    std::uint64_t released_ = 0;     // batches of this pass that the caller is done with
    bool lent_ = false;              // the caller has batch number released_
    bool finished_ = false;          // the source ended or threw
    bool rewind_ = false;
    bool stop_ = false;
    std::exception_ptr failure_;

    std::thread thread_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
