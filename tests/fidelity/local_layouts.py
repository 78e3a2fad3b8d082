#!/usr/bin/env python3
"""Predicted against measured on this machine: 12 layouts of 2 and 4 ranks, and one rank for memory to the byte.

Calibrates, plans, runs and compares each layout in one go, and prints one line per layout and the medians.
Exit 1 when a bound does not hold: median error of step time below 20 %, of peak requested bytes below 1 %, and 0
bytes on one rank. Needs a quiet machine: everything is timed.
usage: local_layouts.py BIN_DIR [--calibration FILE] [--steps N]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

LAYOUTS = [
    (2, "dp=2,dp_shard=1,micro_batch=2"),
    (2, "dp_shard=2,micro_batch=2"),
    (2, "tp=2,sp=off,micro_batch=4"),
    (2, "tp=2,sp=on,micro_batch=4"),
    (2, "pp=2,schedule=1f1b,micro_batch=1"),
    (2, "pp=2,schedule=gpipe,micro_batch=2,recompute=full"),
    (4, "dp=4,dp_shard=1,micro_batch=1"),
    (4, "tp=4,sp=off,micro_batch=4"),
    (4, "tp=2,dp_replicate=2,sp=off,micro_batch=2"),
    (4, "pp=2,dp_shard=2,schedule=1f1b,micro_batch=1"),
    (4, "tp=2,pp=2,sp=off,schedule=1f1b,micro_batch=2"),
    (4, "pp=4,schedule=1f1b,micro_batch=1"),
]
ONE_RANK = [(1, "micro_batch=2"), (1, "micro_batch=4,recompute=full")]
STEP_BOUND, MEMORY_BOUND = 0.20, 0.01


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--calibration", help="use this file instead of measuring now")
    parser.add_argument("--steps", default="9")
    args = parser.parse_args()
    program = str(args.bin_dir / "meshwright")

    def call(*command):
        done = subprocess.run([program, *command], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"meshwright {' '.join(command)} exited with {done.returncode}:\n{done.stderr}")
        return done.stdout

    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: f"{folder}/{name}"
        text = "".join(f"Line {i} of a text of many lines, number {i * i % 9973}.\n" for i in range(20000))
        pathlib.Path(path("text.txt")).write_text(text)
        call("tokenize", path("text.txt"), "-o", path("tokens"))
        calibration = args.calibration or path("calibration.json")
        if not args.calibration:
            call("calibrate", "-o", calibration)
        rows = []
        print(f"{'ranks':>5}  {'layout':<50} {'step predicted':>14} {'measured':>10} {'error':>8} {'peak error':>12}")
        for ranks, layout in LAYOUTS + ONE_RANK:
            pinned = layout if "recompute" in layout else layout + ",recompute=none"
            call("plan", "--model", "quickstart-6m", "--cluster", f"{ranks}xlocal", "--global-batch", "2048",
                 "--layout", pinned, "--calibration", calibration, "--top", "1", "-o", path("plan.json"))
            call("run", path("plan.json"), "--data", path("tokens"), "--steps", args.steps, "--out", path("run"))
            report = json.loads(pathlib.Path(path("run/report.json")).read_text())
            predicted, measured = report["predicted"], report["measured"]
            step = predicted["step_time_s"] / measured["step_time_s"] - 1
            peak = predicted["peak_memory_bytes"] - measured["peak_memory_bytes"]
            rows.append((ranks, step, peak / measured["peak_memory_bytes"], peak))
            print(f"{ranks:>5}  {pinned:<50} {predicted['step_time_s']:>12.3f} s {measured['step_time_s']:>8.3f} s"
                  f" {step:>+8.1%} {peak:>+10.0f} B", flush=True)

    several = [r for r in rows if r[0] > 1]
    step = statistics.median(abs(r[1]) for r in several)
    memory = statistics.median(abs(r[2]) for r in several)
    one_rank = max(abs(r[3]) for r in rows if r[0] == 1)
    print(f"\n{len(several)} layouts: median error of step time {step:.1%} (bound {STEP_BOUND:.0%}), "
          f"of peak requested bytes {memory:.2%} (bound {MEMORY_BOUND:.0%}); one rank: {one_rank:.0f} bytes off")
    return 0 if step < STEP_BOUND and memory < MEMORY_BOUND and one_rank == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
