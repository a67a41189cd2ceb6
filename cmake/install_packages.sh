#!/usr/bin/env bash
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# install_packages.sh build    what building the examples and benchmarks needs on Debian 12
# install_packages.sh [check]  what checking the project needs, too
#
# Only what is missing; where nothing is missing it needs no network.
set -euo pipefail

packages=(
    g++ cmake ninja-build ccache
    libboost-dev libbenchmark-dev libcli11-dev libfmt-dev nlohmann-json3-dev
    libopenblas-dev libdnnl-dev libopenmpi-dev openmpi-bin zlib1g-dev libxxhash-dev
)
if [ "${1:-check}" != build ]; then
    packages+=(
        libgtest-dev librapidcheck-dev clang clang-format clang-tidy libclang-rt-14-dev python3 libsimgrid-dev spin doxygen
    )
fi

if ! command -v dpkg-query >/dev/null; then
    echo "Not a Debian system; these packages, or their like, are expected to be there: ${packages[*]}" >&2
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi

echo "Installing ${missing[*]}" >&2
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
