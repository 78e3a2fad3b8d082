#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole loop on this machine: calibrate, plan, train on four local ranks, compare prediction with measurement.
# usage: tools/quickstart.sh     Results go to out/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

heading() { printf '\n== %s\n' "$1"; }

heading "Set up"
tools/setup.sh

heading "Build"
cmake --preset release >/dev/null
cmake --build --preset release -j 2
meshwright=build/release/bin/meshwright

heading "Text and tokens"
[ -f out/corpus.txt ] || tools/corpus.sh out/corpus.txt
[ -f out/corpus.tokens ] || $meshwright tokenize out/corpus.txt -o out/corpus.tokens

heading "Calibrate: measure this machine"
$meshwright calibrate -o out/calibration.json

heading "Plan: predict and rank the layouts"
$meshwright plan --model quickstart-6m --cluster 4xlocal --workload pretrain \
  --calibration out/calibration.json --top 5 -o out/plan.json

heading "Run: train with the best plan"
$meshwright run out/plan.json --data out/corpus.tokens --steps 60 --out out/run

heading "Compare: prediction against measurement"
$meshwright compare out/run
