#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds with warnings as errors and runs the tests.
# usage: tools/test.sh [--full] [--no-torch]    --full: the slow tests too; --no-torch: without exec
# Tests that need a GPU skip themselves where there is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

setup_options=()
ctest_options=(-LE slow)
for argument in "$@"; do
  case $argument in
    --full) ctest_options=() ;;
    --no-torch) setup_options=(--no-torch) ;;
    *) sed -n '3,5s/^# //p' "$0"; exit 2 ;;
  esac
done

tools/setup.sh "${setup_options[@]}"
cmake --preset ci
# Two jobs: a source that includes LibTorch takes over 1 GB of memory.
cmake --build --preset ci -j 2
ctest --preset ci "${ctest_options[@]}"
