// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// EXPECT: two and two are not five
static_assert(2 + 2 == 5, "two and two are not five");

int main() {}
