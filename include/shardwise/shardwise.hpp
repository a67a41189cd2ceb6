// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Everything that needs nothing but a C++20 compiler and Boost.MP11. Backends have headers of their own.
#pragma once
