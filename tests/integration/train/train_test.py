#!/usr/bin/env python3
"""Plan, run, compare and verify with real worker processes. usage: train_test.py BIN_DIR"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
CONFIG = {"model_type": "llama", "vocab_size": 257, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 4,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}


def meshwright(*arguments, expect=0):
    done = subprocess.run([BIN / "meshwright", *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == expect, f"{arguments}: exit {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}"
    return done


def children_of(pid):
    """Process ids whose parent is `pid`, from /proc (a bare Debian has no pgrep)."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = status.read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue  # it ended meanwhile
        if parent == str(pid):
            found.append(status.parent.name)
    return found


class Train(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.folder.name)
        (cls.dir / "config.json").write_text(json.dumps(CONFIG))
        (cls.dir / "text.txt").write_text("The quick brown fox jumps over the lazy dog. " * 400)
        meshwright("tokenize", cls.dir / "text.txt", "-o", cls.dir / "tokens")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def plan(self, ranks, layout, name):
        path = self.dir / name
        meshwright("plan", "--model", self.dir / "config.json", "--cluster", f"{ranks}xlocal", "--seq-len", 32,
                   "--global-batch", 256, "--layout", layout, "--top", 1, "-o", path)
        return path

    def test_loss_falls_and_the_report_holds_both_sides(self):
        plan = self.plan(4, "tp=2,pp=2,micro_batch=2,recompute=none", "four.json")
        out = self.dir / "run"
        meshwright("run", plan, "--data", self.dir / "tokens", "--steps", 60, "--out", out)
        report = json.loads((out / "report.json").read_text())
        self.assertEqual(report["plan_hash"], json.loads(plan.read_text())["plan_hash"])
        self.assertEqual(len(report["loss"]), 60)
        self.assertLess(report["loss"][-1], report["loss"][0] - 1.5)
        for side in ("predicted", "measured"):
            self.assertAlmostEqual(sum(report[side]["terms"].values()), report[side]["step_time_s"], delta=1e-6)
        # The memory replay is exact, on several ranks too.
        self.assertEqual(report["predicted"]["peak_memory_bytes"], report["measured"]["peak_memory_bytes"])
        events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
        self.assertEqual(sum(e["type"] == "step" for e in events), 60)
        self.assertEqual(sum(e["type"] == "finished" for e in events), 4)
        self.assertIn("traceEvents", json.loads((out / "trace.json").read_text()))
        terms = json.loads(meshwright("compare", out, "--json").stdout)["terms"]
        self.assertEqual(set(terms[0]), {"name", "unit", "predicted", "measured", "rel_err"})
        meshwright("compare", out, "--max-step-error", "1e-9", expect=1)

    def test_layouts_give_the_same_losses(self):
        losses = []
        for ranks, layout in ((1, "micro_batch=1,recompute=none"), (2, "dp_shard=2,micro_batch=2,recompute=full")):
            out = self.dir / f"same{ranks}"
            plan = self.plan(ranks, layout, f"same{ranks}.json")
            meshwright("run", plan, "--data", self.dir / "tokens", "--steps", 3, "--out", out)
            losses.append(json.loads((out / "report.json").read_text())["loss"])
        for one, two in zip(*losses):
            self.assertAlmostEqual(one, two, delta=1e-5 * one)

    def test_a_killed_rank_ends_the_job_and_is_named(self):
        plan = self.plan(2, "dp=2,dp_shard=1,micro_batch=1", "kill.json")
        job = subprocess.Popen([BIN / "meshwright", "run", plan, "--data", self.dir / "tokens", "--steps", "1000000", "--out",
                                self.dir / "kill"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        events = self.dir / "kill" / "events.jsonl"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (events.exists() and '"step"' in events.read_text()):
            time.sleep(0.05)
        children = children_of(job.pid)
        self.assertEqual(len(children), 2)
        victim = next(c for c in children if b"\0RANK=1\0" in pathlib.Path(f"/proc/{c}/environ").read_bytes())
        start = time.monotonic()
        os.kill(int(victim), signal.SIGKILL)
        stderr = job.communicate(timeout=60)[1]
        self.assertEqual(job.returncode, 70, stderr)
        self.assertLess(time.monotonic() - start, 10)
        self.assertIn("rank 1 was killed by signal 9", stderr)
        for child in children:
            self.assertFalse(pathlib.Path(f"/proc/{child}").exists(), "an orphan worker")

    def test_the_plan_is_for_its_own_world(self):
        plan = self.plan(2, "dp=2,dp_shard=1,micro_batch=1", "world.json")
        done = meshwright("run", plan, "--data", self.dir / "tokens", "--world-size", 3, expect=2)
        self.assertIn("world_size = 3", done.stderr)
        environment = dict(os.environ, RANK="0", WORLD_SIZE="3", MESHWRIGHT_STORE=f"file:{self.dir}/store")
        worker = subprocess.run([BIN / "meshwright-worker", "train", plan, "--data", self.dir / "tokens", "--steps", "1",
                                 "--out", self.dir / "world"], env=environment, capture_output=True, text=True)
        self.assertEqual(worker.returncode, 2)
        self.assertIn("the plan is for 2 ranks", worker.stdout)

    def test_every_layout_of_the_slice_equals_one_rank(self):
        layouts = json.loads(meshwright("verify", "--suite", "slice", "--json").stdout)["layouts"]
        self.assertGreaterEqual(len(layouts), 24)
        for layout in layouts:
            self.assertTrue(layout["ok"], layout)
            self.assertLessEqual(layout["max_grad_rel_err"], 1e-5)

    def test_random_layouts_equal_one_rank(self):
        meshwright("verify", "--random", 24, "--seed", 20)

    def test_injected_faults_are_caught(self):
        for fault in ("skipped_all_reduce", "doubled_norm_term", "wrong_loss_scale"):
            meshwright("verify", "--suite", "slice", "--inject", fault, expect=1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
