// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <boost/mp11.hpp>

#include "shardwise/core/config.hpp"
#include "shardwise/plan/plan.hpp"

/// \file
/// The check reader: a plan whose steps do not fit does not compile, with one error that names both steps.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// Stands before the first step of a plan.
struct Start {};
/// The form of the lanes after a step that does not fit: everything follows it, so that there is one error.
struct Misfit {};

template <class S, class Form>
using OutOf = typename S::template Out<Form>;
template <class Merge, class... Forms>
using OutOfMerge = typename Merge::template Out<Forms...>;

/// `Next` follows `Previous` on lanes of form `Form`. Where it cannot, this is the one error.
template <class Previous, class Next, class Form>
struct StepFollows {
    static constexpr bool fits = boost::mp11::mp_valid<OutOf, Next, Form>::value;
    using type = boost::mp11::mp_eval_or<Misfit, OutOf, Next, Form>;
    static_assert(
        fits,
        "this step cannot follow the one before it: it does not take lanes of this form (see 'StepFollows<previous "
        "step, this step, form of the lanes>' above)");
};
template <class Previous, class Next>
struct StepFollows<Previous, Next, Misfit> {
    using type = Misfit;
};

/// `Merge` takes the forms in which the plans before it end.
template <class Merge, class... Forms>
struct MergeFollows {
    static constexpr bool misfit = (std::is_same_v<Forms, Misfit> || ...);
    static constexpr bool fits = boost::mp11::mp_valid<OutOfMerge, Merge, Forms...>::value;
    using type = std::conditional_t<misfit, Misfit, boost::mp11::mp_eval_or<Misfit, OutOfMerge, Merge, Forms...>>;
    static_assert(misfit || fits,
                  "plans that run together end in lanes of forms that the merge behind them takes (see "
                  "'MergeFollows<merge, forms of the lanes>' above)");
};

template <class Previous, class Form, class... Steps>
struct CheckSteps {
    using type = Form;
};
template <class Previous, class Form, class Next, class... Rest>
struct CheckSteps<Previous, Form, Next, Rest...> {
    using type = typename CheckSteps<Next, typename StepFollows<Previous, Next, Form>::type, Rest...>::type;
};

template <class Form, class P>
struct CheckPlan;
template <class Form, class... Steps>
struct CheckPlan<Form, Plan<Steps...>> {
    using type = typename CheckSteps<Start, Form, Steps...>::type;
};

template <class Previous, class Form, class Fork, class Merge, class... Plans, class... Rest>
struct CheckSteps<Previous, Form, Together<Fork, Merge, Plans...>, Rest...> {
    using inside = typename StepFollows<Previous, Fork, Form>::type;
    using out = typename MergeFollows<Merge, typename CheckPlan<inside, Plans>::type...>::type;
    using type = typename CheckSteps<Merge, out, Rest...>::type;
};

}  // namespace detail

/// The form of the lanes after P, which starts on lanes of form `Form`. Does not compile where a step does not fit.
template <class Form, class P>
using FormAfter = typename detail::CheckPlan<Form, P>::type;

}  // namespace shardwise::inline SHARDWISE_ABI
