#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what Meshwright needs on Debian 12: compiler and libraries from apt, LibTorch from PyPI into .deps/.
# usage: tools/setup.sh [--no-torch]      --no-torch: sim, kernels and their tests only, 1 GB less to fetch
# Safe to run again: it looks first, and when all is there it neither writes nor needs a network. Root or sudo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

with_torch=1
for argument in "$@"; do
  case $argument in
    --no-torch) with_torch=0 ;;
    *) sed -n '3,5s/^# //p' "$0"; exit 2 ;;
  esac
done

packages=(
  g++ cmake ninja-build ccache mold git ca-certificates python3 python3-pip clang-format
  nlohmann-json3-dev libcli11-dev libfmt-dev libspdlog-dev libeigen3-dev libcsv-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev
  bible-kjv # tools/corpus.sh
)
# The CPU part of the ordinary wheel. It is linked to the CUDA runtime and CUPTI, so those two come along; the
# rest of CUDA (4 GB) is not needed and --no-deps leaves it out.
torch=torch==2.11.0
cuda="cuda-toolkit[cudart,cupti]==13.0.2"
stamp="$torch $cuda"

log=build/setup.log
quietly() {
  mkdir -p build
  if ! "$@" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    echo "setup: failed: $* (log: $log)" >&2
    exit 1
  fi
}

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || { echo "setup: needs apt-get (Debian 12)" >&2; exit 1; }
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "setup: run as root or install sudo" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "setup: apt packages: ${missing[*]}"
  quietly "${as_root[@]}" apt-get update
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"
fi

if [ $with_torch = 1 ] && [ "$(cat .deps/.setup-stamp 2>/dev/null)" != "$stamp" ]; then
  echo "setup: LibTorch into .deps (a download of several hundred MB)"
  # Elsewhere first, then one rename: an interrupted set-up leaves no .deps that looks finished.
  partial=.cache/deps.partial
  rm -rf "$partial"
  mkdir -p "$partial"
  pip_install=(python3 -m pip install --quiet --no-cache-dir --root-user-action=ignore
               --disable-pip-version-check --target "$partial")
  quietly "${pip_install[@]}" --no-deps "$torch"
  quietly "${pip_install[@]}" "$cuda"
  echo "$stamp" >"$partial/.setup-stamp"
  rm -rf .deps
  mv "$partial" .deps
fi
