# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: exit status and message of bad input, fields of its JSON.

Usage: cli_test.py PATH/TO/meshwright [unittest arguments]. Needs no executor: no rank is started.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "meshwright"
LLAMA = ["--model", "llama-3-70b", "--cluster", "64xa100-80g"]
SMALL = ["--model", "quickstart-6m", "--cluster", "2xlocal"]
LAYOUT_FIELDS = {
    "persistence_threshold",
    "reduce_bucket",
    "dp_replicate",
    "dp_shard",
    "tp",
    "sp",
    "cp",
    "cp_kind",
    "pp",
    "ep",
    "expert_tp",
    "virtual_stages",
    "micro_batch",
    "num_micro_batches",
    "zero_stage",
    "prefetch",
    "reshard",
    "recompute",
    "recompute_layers",
    "flash_attention",
    "schedule",
    "precision",
    "gradients",
    "moments",
    "offload_optimizer",
    "offload_parameters",
    "offload_activations",
    "stages",
}
TERMS = {
    "compute_s",
    "recompute_s",
    "exposed_tp_s",
    "exposed_cp_s",
    "exposed_ep_s",
    "exposed_pp_s",
    "exposed_dp_s",
    "bubble_s",
    "optimizer_s",
    "host_s",
    "other_s",
}


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        # An empty cache: no calibration of this machine changes what is printed.
        cls.environment = dict(os.environ, XDG_CACHE_HOME=str(cls.folder / "cache"))
        cls.plan = cls.folder / "plan.json"
        made = cls.run_program("plan", *SMALL, "-o", str(cls.plan))
        assert made.returncode == 0, made.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def run_program(cls, *arguments):
        return subprocess.run(
            [PROGRAM, *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            env=cls.environment,
            check=False,
        )

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def refused(self, arguments, *parts, status=2):
        """The command fails with `status`, says all of `parts` on stderr and nothing on stdout."""
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertNotIn("terminate called", done.stderr)
        self.assertNotIn("check failed", done.stderr)
        return done.stderr


class Program(CliTest):
    def test_version_is_fast(self):
        best = min(self.timed("--version") for _ in range(5))
        self.assertLess(best, 0.25)  # 50 ms on an idle machine; the bar leaves room for a busy one
        self.assertRegex(self.run_program("--version").stdout, r"^meshwright \d+\.\d+\.\d+\n$")

    def timed(self, *arguments):
        start = time.monotonic()
        self.run_program(*arguments)
        return time.monotonic() - start

    def test_links_no_torch(self):
        libraries = subprocess.run(
            ["ldd", PROGRAM], capture_output=True, text=True, check=True
        ).stdout
        self.assertIn("libstdc++", libraries)
        for forbidden in ("torch", "c10", "cuda", "Qt"):
            self.assertNotIn(forbidden, libraries)

    def test_unknown_verb_and_flag(self):
        self.refused(["trian"], "not expected: trian", "--help")
        self.refused(["plan", *LLAMA, "--frobnicate"], "not expected: --frobnicate")
        self.refused(["plan"], "--model is required")
        self.refused(["plan", "--model", "llama-3-70b"], "--cluster is required")

    def test_list_and_help(self):
        listed = self.run_program("--list")
        self.assertEqual(listed.returncode, 0)
        for name in ("llama-3-70b", "a100-80g", "pretrain"):
            self.assertIn(name, listed.stdout)
        for arguments in ([], ["--help"], ["plan", "--help"]):
            shown = self.run_program(*arguments)
            self.assertEqual(shown.returncode, 0)
            self.assertIn("--help", shown.stdout)


class Measurements(CliTest):
    """fit writes the document that validate --constants takes."""

    def test_fit_then_validate(self):
        # A made-up device time: 5 us and 60 % of the H100's peak, over 216 shapes.
        sizes = (64, 256, 1024, 2048, 4096, 8192)
        lines = ["gpu,dtype,m,n,k,latency_ms"]
        lines += [
            f"h100_sxm,bf16,{m},{n},{k},{5e-3 + 2 * m * n * k / 0.6 / 989e12 * 1e3:.6g}"
            for m in sizes
            for n in sizes
            for k in sizes
        ]
        lines += ["h100_sxm,bf16,64,oops,64,1", "tpu,bf16,64,64,64,1"]
        table = self.write("gemm.csv", "\n".join(lines) + "\n")
        document = str(self.folder / "own.json")
        fitted = self.run_program("fit", table, "-o", document, "--json")
        self.assertEqual(fitted.returncode, 0, fitted.stderr)
        fit = json.loads(fitted.stdout)["fits"][0]
        self.assertEqual((fit["device"], fit["kind"], fit["rows"]), ("h100", "bf16", 216))
        judged = self.run_program("validate", table, "--constants", document, "--json")
        self.assertEqual(judged.returncode, 0, judged.stderr)
        report = json.loads(judged.stdout)
        self.assertEqual(report["family"], "gemm")
        self.assertEqual([r["line"] for r in report["rows"] if r["skipped"]], [218, 219])
        self.assertEqual(report["summary"][-1]["count"], 216)
        self.assertLess(report["summary"][-1]["median"], 0.1)
        # The built-in constants are of the real device, and do not fit this one.
        built_in = json.loads(self.run_program("validate", table, "--json").stdout)
        self.assertGreater(built_in["summary"][-1]["median"], report["summary"][-1]["median"])

    def test_refused(self):
        other = self.write("other.csv", "a,b\n1,2\n")
        self.refused(["fit", other], "matches no table of operator times")
        self.refused(["validate", other], "matches no family of measurements")
        self.refused(["fit", "no/such.csv"], "no/such.csv")


class Names(CliTest):
    def test_model(self):
        self.refused(
            ["plan", "--model", "llama-3-7b", "--cluster", "8xh100"],
            "--model: model = llama-3-7b: is neither a built-in name nor a path that exists",
            "did you mean llama-2-7b?",
        )

    def test_cluster(self):
        model = ["plan", "--model", "llama-3-70b", "--cluster"]
        self.refused([*model, "64xa100"], "cluster = 64xa100", "did you mean a100-80g?")
        for count in ("0", "-1", "many", "1000001", "9" * 30):
            self.refused(
                [*model, count + "xa100-80g"],
                f"num_devices = {count}: must be a whole number from 1 to 1000000",
                "write for example 8xa100-80g",
            )
        self.refused([*model, "xa100-80g"], "num_devices: must be a whole number from 1 to 1000000")

    def test_workload_and_precision(self):
        self.refused(
            ["plan", *LLAMA, "--workload", "sftt"], "workload = sftt", "built-in: pretrain, sft"
        )
        self.refused(
            ["plan", *LLAMA, "--precision", "fp4"],
            "--precision: precision = fp4: must be one of fp32, bf16, fp8",
        )
        self.refused(
            ["plan", *LLAMA, "--precision", "fp8"],
            "the matmul units of a100-80g have no FP8",
            "use --precision bf16",
        )
        self.refused(
            ["plan", *SMALL, "--precision", "bf16"],
            "precision = bf16",
            "CPU ranks compute in FP32",
            "use --precision fp32",
        )


class Sizes(CliTest):
    def test_counts(self):
        ranges = {
            "--seq-len": "100000000",
            "--global-batch": "1000000000000000",
            "--tokens": "1000000000000000",
            "--top": "1000",
        }
        for flag, largest in ranges.items():
            for value in (
                "0",
                "-1",
                "1.5",
                "abc",
                "4Q",
                "nan",
                "inf",
                "1e400",
                "9" * 30,
                "0x10",
                " ",
            ):
                self.refused(
                    ["plan", *LLAMA, f"{flag}={value}"],
                    f"{flag}: {flag[2:]} = {value}",
                    f"must be a whole number from 1 to {largest}",
                )

    def test_suffixes(self):
        done = self.run_program(
            "plan",
            *SMALL,
            "--seq-len",
            "128",
            "--global-batch",
            "2Ki",
            "--tokens",
            "1.5M",
            "--json",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        workload = json.loads(done.stdout)["workload"]
        self.assertEqual(workload["seq_len"], 128)
        self.assertEqual(workload["global_batch_sequences"], 16)

    def test_batch_of_part_sequences(self):
        self.refused(
            ["plan", *LLAMA, "--global-batch", "5000"],
            "--global-batch: global_batch_tokens = 5000",
            "must be a multiple of the sequence length (4096)",
            "use 4096 or 8192",
        )

    def test_batch_too_large_to_simulate(self):
        self.refused(
            ["plan", *LLAMA, "--global-batch", "900T"],
            "global_batch_tokens = 900000000000000",
            "more than 1048576",
            "use at most 4294967296",
        )

    def test_sequence_beyond_the_model(self):
        self.refused(
            ["plan", *LLAMA, "--seq-len", "16384"],
            "seq_len = 16384",
            "exceeds the model's max_position_embeddings (8192)",
            "use --seq-len 8192",
        )


class Layouts(CliTest):
    def refuse(self, layout, *parts):
        self.refused(["plan", *LLAMA, "--layout", layout], *parts)

    def test_degree_that_does_not_divide_the_heads(self):
        self.refuse("tp=3", "tp = 3: must divide the 64 attention heads", "use tp=2 or tp=4")

    def test_product_is_not_the_world_size(self):
        self.refuse(
            "tp=8,pp=2,dp=2",
            "pp(2) * dp_replicate(2) * dp_shard(1) * cp(1) * tp(8) = 32",
            "must be the 64 devices of the cluster",
            "use dp_replicate=4",
        )
        self.refuse("dp=3", "layout = dp=3: has no legal completion", "must multiply to 64 devices")

    def test_values(self):
        self.refuse("tp=0", "--layout: tp = 0: must be a whole number from 1")
        self.refuse("tp=-2", "tp = -2")
        self.refuse("tp=two", "tp = two")
        self.refuse("tp=99999999999999999999", "tp = 99999999999999999999")
        self.refuse("tpp=2", "tpp = 2: is not an axis of a layout", "did you mean tp?")
        self.refuse("sp=maybe", "sp = maybe: must be on or off")
        self.refuse("cp=3,tp=1,pp=1,dp=64", "cp(3)", "must be the 64 devices of the cluster")
        self.refuse("ep=2", "ep = 2: this model has no experts to spread", "use ep=1")
        self.refuse(
            "zero_stage=2,schedule=zb_h1,pp=2,tp=8",
            "zero_stage = 2: schedule zb_h1 puts weight gradients off",
            "use zero_stage=1, or schedule=1f1b",
        )
        self.refuse(
            "offload_parameters=host,zero_stage=1",
            "fetches the parameters layer by layer",
            "use zero_stage=3",
        )
        self.refuse(
            "micro_batch=3",
            "micro_batch = 3: must divide the 16 sequences",
            "use micro_batch=2 or micro_batch=4",
        )
        self.refuse(
            "zero_stage=1,dp_replicate=8,tp=8",
            "zero_stage = 1: needs dp_shard > 1",
            "use zero_stage=0",
        )

    def test_stages(self):
        command = ["plan", *LLAMA, "--stages"]
        self.refused(
            [*command, "40,30"],
            "stages = 40,30: must cover the 80 layers exactly once, but sum to 70",
            "use --stages 40,40",
        )
        self.refused(
            [*command, "40,40", "--layout", "pp=4"],
            "must have one entry per stage: 2 given, pp is 4",
            "use --stages 20,20,20,20",
        )
        self.refused([*command, "80,0"], "every stage needs at least one layer")
        self.refused([*command, "40;40"], "--stages: stages = 40;40: must be a whole number")

    def test_nothing_fits_is_an_answer(self):
        command = ["plan", "--model", "llama-3-70b", "--cluster", "2xa100-80g"]
        self.refused(
            command,
            "nothing fits: memory: the upper bound of the peak must not exceed the capacity of a device",
            "GiB",
            "add devices",
            status=1,
        )
        done = self.run_program(*command, "--json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing fits", json.loads(done.stdout)["errors"][0]["rule"])


class Documents(CliTest):
    def test_missing_and_folder(self):
        for verb in ("explain", "simulate"):
            self.refused([verb, "none.json"], "none.json: no such file", "check the path")
            self.refused([verb, str(self.folder)], "is a directory, not a file")

    def test_broken_json_names_line_and_column(self):
        path = self.write("broken.json", '{\n  "schema_version": 1,\n  "plan_hash" "x"\n}\n')
        self.refused(["explain", path], f"{path}: line 3, column 17: is not valid JSON")
        cut = self.write("cut.json", self.plan.read_text()[:200])
        self.assertRegex(
            self.refused(["explain", cut]), r"cut\.json: line \d+, column \d+: is not valid JSON"
        )
        self.refused(
            ["explain", self.write("empty.json", "")], "line 1, column 1: is not valid JSON"
        )
        self.refused(
            ["explain", self.write("binary.json", b"\xff\xfe\x00{")],
            "line 1, column 1: is not valid JSON: syntax error",
            "last read: '?'",
        )
        self.refused(["explain", self.write("list.json", "[1, 2]")], "[1,2]: must be a JSON object")

    def test_edited_plan(self):
        edited = self.plan.read_text().replace(
            '"global_batch_sequences": 16', '"global_batch_sequences": 32'
        )
        self.assertNotEqual(edited, self.plan.read_text())
        path = self.write("edited.json", edited)
        for command in (["explain", path], ["simulate", path], ["run", path, "--data", path]):
            self.refused(
                command, f"{path}#/plan_hash", "it was edited after planning", "plan again"
            )

    def test_plan_keys_and_schema(self):
        plan = json.loads(self.plan.read_text())
        self.refused(
            ["explain", self.write("schema.json", json.dumps(dict(plan, schema_version=9)))],
            "#/schema_version: schema_version = 9: must be from 1 to 1",
        )
        self.refused(
            ["explain", self.write("key.json", json.dumps(dict(plan, colour="red")))],
            '#/colour: colour = "red": is not a known key',
        )
        del plan["decision"]
        self.refused(
            ["explain", self.write("less.json", json.dumps(plan))],
            "decision = missing: is required",
        )

    def test_cluster_document(self):
        def document(**link):
            return json.dumps(
                {
                    "schema_version": 1,
                    "name": "lab",
                    "num_devices": 8,
                    "device": "h100",
                    "inter_node": link,
                }
            )

        model = ["plan", "--model", "llama-3-8b", "--cluster"]
        self.refused(
            [*model, self.write("unit.json", document(bandwidth=300, alpha_us=5))],
            "#/inter_node/bandwidth",
            "= 300: is a quantity without a unit",
            'write "bandwidth_GBps"',
        )
        self.refused(
            [
                *model,
                self.write("typo.json", document(bandwidth_GBps=300, alpha_us=5, efficency=1)),
            ],
            "is not a known key",
            'did you mean "efficiency"?',
        )
        self.refused(
            [*model, self.write("negative.json", document(bandwidth_GBps=-1, alpha_us=5))],
            "bandwidth_GBps = -1: must be from",
        )

    def test_model_document(self):
        def refuse(changes, *parts):
            config = {
                "model_type": "llama",
                "vocab_size": 1000,
                "hidden_size": 64,
                "intermediate_size": 96,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
            }
            path = self.write("config.json", json.dumps({**config, **changes}))
            self.refused(["plan", "--model", path, "--cluster", "8xh100"], *parts)

        refuse({"model_type": "mamba"}, 'model_type = "mamba"', "known: llama, mistral, qwen2")
        refuse({"mlp_bias": True}, "mlp_bias", "changes the mathematics and is not supported")
        refuse({"hidden_act": "gelu"}, 'hidden_act = "gelu"', 'only "silu" is')
        for bad in (0, -64, 1e30, "64", 64.5):
            refuse({"hidden_size": bad}, "#/hidden_size: hidden_size = ", "must be")
        refuse({"num_attention_heads": 5}, "must be a multiple of num_attention_heads (5)")

    def test_ranks(self):
        self.refused(
            ["explain", str(self.plan), "--rank", "7"],
            "--rank: rank = 7: must be a whole number from 0 to 1",
        )
        self.refused(["verify", "--random", "-3"], "--random: random = -3: must be a whole")
        self.refused(["explain", str(self.plan), "--rank", "-1"], "rank = -1")
        self.refused(["explain", str(self.plan), "--rank", "x"], "rank = x")

    def test_output_that_cannot_be_written(self):
        done = self.run_program("plan", *SMALL, "-o", str(self.folder / "none" / "plan.json"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("is in a folder that does not exist; make ", done.stderr)


class Advice(CliTest):
    """The planner explains itself: definitions, objectives, counterfactuals, findings, devices."""

    JOB = ["--model", "llama-3-8b", "--cluster", "16xh100", "--global-batch", "1Mi"]

    def document(self, *arguments):
        done = self.run_program(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def planned(self, *pins):
        path = str(self.folder / "advice.json")
        made = self.run_program("plan", *self.JOB, *pins, "-o", path)
        self.assertEqual(made.returncode, 0, made.stderr)
        return path

    def test_flops_are_named_and_never_mixed(self):
        pins = ["--layout", "tp=2,pp=1,recompute=full,micro_batch=1"]
        plan = self.planned(*pins)
        figures = {}
        for flops in ("model", "hardware", "causal"):
            planned = self.document("plan", *self.JOB, *pins, "--flops", flops)["plans"][0]
            simulated = self.document("simulate", plan, "--flops", flops)
            explained = self.document("explain", plan, "--flops", flops)
            for document in (planned, simulated, explained):
                for key in ("mfu", "hfu", "mfu_flop_definition", "flop_per_step"):
                    self.assertEqual(document[key], planned[key])
            figures[flops] = planned
        self.assertEqual(figures["model"]["mfu_flop_definition"], "model")
        self.assertEqual(figures["hardware"]["mfu_flop_definition"], "model")
        self.assertEqual(figures["causal"]["mfu_flop_definition"], "causal")
        flop = figures["model"]["flop_per_step"]
        self.assertLess(flop["causal"], flop["model"])
        self.assertAlmostEqual(flop["hardware"] / flop["model"], 4 / 3, delta=0.03)
        self.assertEqual(figures["hardware"]["mfu"], figures["model"]["mfu"])
        self.assertAlmostEqual(
            figures["model"]["hfu"] / figures["model"]["mfu"],
            flop["hardware"] / flop["model"],
            delta=1e-9,
        )
        for flops, name in (("model", " MFU "), ("hardware", " HFU "), ("causal", "MFU(causal)")):
            text = self.run_program("simulate", plan, "--flops", flops).stdout
            self.assertIn(name, text.replace("\n", " "))
        self.refused(
            ["plan", *self.JOB, "--flops", "peak"],
            "--flops: flops = peak: must be one of model, hardware, causal",
        )

    def test_packed_documents_cost_less_attention(self):
        pins = ["--layout", "tp=2,pp=1,micro_batch=1"]
        whole = self.document("plan", *self.JOB, *pins)["plans"][0]
        packed_plan = self.planned(*pins, "--document-lengths", "300,700")
        packed = self.document("simulate", packed_plan)
        attention = whole["flop_per_step"]["model"] - packed["flop_per_step"]["model"]
        # 12 L h s per token, of which documents keep (300^2 + 700^2) / 1000 of 4096 tokens.
        self.assertAlmostEqual(
            attention / (12 * 32 * 4096 * (4096 - 580) * 2**20), 1, delta=1e-6
        )
        self.assertLess(packed["step_time_s"], whole["step_time_s"])
        self.refused(
            ["plan", *self.JOB, "--document-lengths", "300,many"],
            "--document-lengths: document-lengths = many: must be a whole number",
        )
        self.refused(
            [
                "plan",
                "--model",
                "quickstart-6m",
                "--cluster",
                "2xlocal",
                "--document-lengths",
                "100",
            ],
            "the worker's attention spans the sequence",
            status=1,
        )

    def test_memory_objective_and_pareto(self):
        fastest = self.document("plan", *self.JOB, "--pareto")
        front = [(p["step_time_s"], p["peak_memory_bytes"]) for p in fastest["pareto"]]
        self.assertGreater(len(front), 1)
        self.assertEqual(front, sorted(front, key=lambda p: (p[0], -p[1])))
        for slower, faster in zip(front[1:], front):
            self.assertGreater(slower[0], faster[0])
            self.assertLess(slower[1], faster[1])
        limit = fastest["plans"][0]["step_time_s"]
        lean = self.document("plan", *self.JOB, "--objective", "memory", "--slack", "20")
        self.assertLessEqual(lean["plans"][0]["step_time_s"], 1.2 * limit)
        self.assertLess(
            lean["plans"][0]["peak_memory_bytes"], fastest["plans"][0]["peak_memory_bytes"]
        )
        sizes = self.document("plan", *self.JOB, "--objective", "cost", "--pareto")
        self.assertGreater(len({p["devices"] for p in sizes["pareto"]}), 1)
        text = self.run_program("plan", *self.JOB, "--pareto").stdout
        self.assertIn("Pareto front", text)
        self.refused(
            ["plan", *self.JOB, "--objective", "speed"], "must be time, cost, gpus or memory"
        )
        self.refused(["plan", *self.JOB, "--slack", "-1"], "--slack: slack = -1")

    def test_counterfactuals(self):
        document = self.document("plan", *self.JOB)
        self.assertTrue(document["counterfactuals"])
        best = document["plans"][0]["step_time_s"]
        for other in document["counterfactuals"]:
            self.assertGreaterEqual(other["step_time_s"], best)
            self.assertTrue(other["differs_in"])
            for c in other["crossings"]:
                self.assertIn(c["knob"], ("inter_node_bandwidth_GBps", "global_batch_sequences"))
                low, high = sorted((c["now"], c["bound"]))
                if c["wins_at"] is not None:
                    self.assertTrue(low <= c["wins_at"] <= high)
        text = self.run_program("plan", *self.JOB).stdout
        self.assertRegex(text, r"wins (above|below|with a batch)|not by (bandwidth|batch) alone")

    def test_against_flips_where_it_says(self):
        plan = self.planned("--layout", "tp=2,pp=1,zero_stage=1")
        duel = self.document("explain", plan, "--against", "tp=1,pp=4,zero_stage=1")["against"]
        flips = [
            c
            for c in duel["crossings"]
            if c["knob"] == "inter_node_bandwidth_GBps" and c["wins_at"] is not None
        ]
        self.assertEqual(len(flips), 1)

        def first(bandwidth):
            cluster = {
                "schema_version": 1,
                "name": "lab",
                "num_devices": 16,
                "device": "h100",
                "inter_node": {"bandwidth_GBps": bandwidth, "generation": "ib_ndr"},
            }
            path = self.write("lab.json", json.dumps(cluster))
            job = ["--model", "llama-3-8b", "--cluster", path, "--global-batch", "1Mi", "--layout"]
            times = []
            for layout in (duel["winner"]["layout"], duel["layout"]):
                keys = ("tp", "pp", "micro_batch", "zero_stage", "dp_shard", "recompute",
                        "schedule", "virtual_stages")  # fmt: skip
                pins = ",".join(f"{k}={layout[k]}" for k in keys)
                times.append(self.document("plan", *job, pins)["plans"][0]["step_time_s"])
            return times[0] <= times[1]

        at = flips[0]["wins_at"]
        nearer = at * (1.01 if flips[0]["direction"] == "less" else 0.99)
        self.assertFalse(first(at))
        self.assertTrue(first(nearer))
        self.refused(["explain", plan, "--against", "tp=3"], "--against", status=1)
        self.refused(["explain", plan, "--against", "tpp=3"], "did you mean tp?")

    def test_findings(self):
        plan = self.planned("--layout", "tp=1,pp=8,micro_batch=16,schedule=1f1b,recompute=full")
        diagnosis = self.document("explain", plan)["diagnosis"]
        found = {f["id"]: f for f in diagnosis["findings"]}
        self.assertIn("bubble", found)
        self.assertIn("recompute", found)
        self.assertGreater(found["bubble"]["value"], found["bubble"]["threshold"])
        remedies = {r["action"]: r for r in found["bubble"]["remedies"]}
        simulated = self.document("simulate", plan)
        halved = remedies["micro_batch=8"]
        self.assertLess(halved["step_time_s"], simulated["step_time_s"])
        text = self.run_program("explain", plan).stdout
        self.assertIn("findings for the whole step", text)
        self.assertIn("M > 9 (P-1) = 63", text)

    def test_advise(self):
        advice = self.document("advise", *LLAMA, "--layout", "schedule=1f1b")
        flow = advice["decision_flow"]
        self.assertEqual(flow["strategy"], "TP + ZeRO")
        self.assertEqual([s["answer"] for s in flow["steps"]], [False, False, True])
        self.assertGreater(flow["steps"][0]["needed_bytes"], 18 * 70553706496)
        self.assertTrue(advice["rules"])
        text = self.run_program("advise", *LLAMA, "--layout", "schedule=1f1b").stdout
        self.assertIn("18 B x 70.55 B parameters = 1182.75 GiB", text)
        self.assertIn("1.5 times as much, not 3 times", text)
        nothing = self.run_program("advise", "--model", "llama-3-70b", "--cluster", "2xa100-80g")
        self.assertEqual(nothing.returncode, 1)
        self.assertIn("no layout of it fits: add devices", nothing.stdout)

    def test_devices(self):
        job = ["--model", "llama-3.2-1b", "--cluster", "8xh100", "--global-batch", "256Ki"]
        job += ["--layout", "pp=1,tp=1", "--devices"]
        rows = self.document("advise", *job)["devices"]
        names = [row["device"] for row in rows]
        self.assertIn("a100-80g", names)
        self.assertNotIn("local", names)
        times = [row["step_time_s"] for row in rows if row["fits"]]
        self.assertEqual(times, sorted(times))
        for row in rows:
            for kind in ("on_demand", "spot"):
                if row[kind] is None or not row["fits"]:
                    continue
                self.assertTrue(row[kind]["source"] and row[kind]["date"])
                self.assertAlmostEqual(
                    row[kind + "_usd_per_step"],
                    row["step_time_s"] / 3600 * 8 * row[kind]["usd_per_device_hour"],
                    delta=1e-12,
                )
        text = self.run_program("advise", *job).stdout
        self.assertIn("prices are assumptions", text)
        self.assertIn("989 TFLOP/s in BF16 without sparsity, 3.2 times", text)


class Data(CliTest):
    def run_on(self, data, *parts, extra=()):
        return self.refused(["run", str(self.plan), "--data", data, *extra], *parts)

    def tokens(self):
        text = self.write("text.txt", "one two three " * 400)
        path = str(self.folder / "tokens.bin")
        made = self.run_program("tokenize", text, "-o", path)
        self.assertEqual(made.returncode, 0, made.stderr)
        return path

    def test_token_file(self):
        good = pathlib.Path(self.tokens()).read_bytes()
        self.run_on("none.bin", "none.bin", "No such file or directory", "meshwright tokenize")
        self.run_on(str(self.plan), "this is not a token file", "meshwright tokenize")
        self.run_on(self.write("empty.bin", b""), "empty.bin")
        self.run_on(self.write("cut.bin", good[: len(good) // 2]), "cut.bin")
        self.run_on(self.write("header.bin", good[:10]), "header.bin")
        middle = len(good) // 2
        flipped = good[:middle] + struct.pack("B", good[middle] ^ 1) + good[middle + 1 :]
        self.run_on(self.write("flipped.bin", flipped), "flipped.bin")
        short = str(self.folder / "short.bin")
        self.assertEqual(
            self.run_program("tokenize", self.write("short.txt", "few"), "-o", short).returncode, 0
        )
        self.run_on(short, "holds no whole sequence of 256 tokens")

    def test_run_flags(self):
        data = self.tokens()
        self.run_on(data, "--steps: steps = 0", extra=("--steps", "0"))
        self.run_on(
            data,
            "--world-size: world_size = 3: must be the 2 ranks",
            "plan again",
            extra=("--world-size", "3"),
        )

    def test_plan_of_another_cluster(self):
        plan = str(self.folder / "gpu.json")
        made = self.run_program(
            "plan",
            "--model",
            "qwen2.5-0.5b",
            "--cluster",
            "1xh100",
            "--global-batch",
            "65536",
            "-o",
            plan,
        )
        self.assertEqual(made.returncode, 0, made.stderr)
        self.refused(
            ["run", plan, "--data", plan],
            "cluster = 1xh100: is not this machine",
            "plan again with --cluster 1xlocal",
        )

    def test_tokenize(self):
        self.refused(
            ["tokenize", "none.txt", "-o", str(self.folder / "x.bin")],
            "none.txt: cannot read the input",
        )


class Calibrations(CliTest):
    @staticmethod
    def calibration():
        kinds = ("linear", "linear_backward_input", "linear_backward_weight")
        return {
            "schema_version": 1,
            "machine_id": "0000000000000000",
            "cpu_model": "a CPU of elsewhere",
            "cores": 64,
            "date": "2026-01-01T00:00:00Z",
            "tool_version": "0.1.0",
            "adamw_params_per_s": 1e9,
            "host_per_operator_s": 1e-6,
            "host_per_action_s": 1e-6,
            "oversubscription": 1.0,
            "matmul": [
                {"operator": k, "m": 64, "n": 64, "k": 64, "seconds_s": 1e-4} for k in kinds
            ],
            "attention": [
                {
                    "seq_len": 256,
                    "head_dim": 64,
                    "forward_flop_per_s": 1e10,
                    "backward_flop_per_s": 1e10,
                }
            ],
            "stream": [{"operator": "add", "overhead_s": 0, "bytes_per_s": 1e10}],
            "collectives": [],
        }

    def test_of_another_machine(self):
        path = self.write("calibration.json", json.dumps(self.calibration()))
        command = ["simulate", str(self.plan), "--calibration", path]
        self.refused(
            command,
            f"{path}#/machine_id: machine_id = 0000000000000000: was measured on another machine "
            "(a CPU of elsewhere)",
            "--force",
        )
        forced = self.run_program(*command, "--force", "--json")
        self.assertEqual(forced.returncode, 0, forced.stderr)
        self.assertIn("calibration", json.loads(forced.stdout)["priced_by"])

    def test_broken(self):
        command = ["simulate", str(self.plan), "--calibration"]
        self.refused([*command, "none.json"], "none.json: no such file")
        self.refused([*command, str(self.plan)], "machine_id = missing: is required")
        c = self.calibration()
        c["matmul"] = c["matmul"][:1]
        self.refused(
            [*command, self.write("half.json", json.dumps(c))], "matmul", "calibrate again"
        )


class JsonOutput(CliTest):
    def test_plan(self):
        done = self.run_program(
            "plan",
            "--model",
            "llama-3-8b",
            "--cluster",
            "8xh100",
            "--global-batch",
            "512Ki",
            "--json",
            "--top",
            "3",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["schema_version"], 1)
        self.assertEqual(
            document["model"],
            {"name": "llama-3-8b", "parameters": 8030261248, "active_parameters": 8030261248},
        )
        self.assertEqual(document["cluster"], {"name": "8xh100", "devices": 8})
        self.assertEqual(document["workload"]["tokens_per_step"], 524288)
        self.assertGreater(document["elapsed_s"], 0)
        self.assertEqual(
            document["examined"],
            document["feasible"] + sum(r["count"] for r in document["rejected"]),
        )
        for r in document["rejected"]:
            self.assertEqual(set(r), {"rule", "count", "example"})
        self.assertEqual(len(document["plans"]), 3)
        for plan in document["plans"]:
            self.assertEqual(set(plan["layout"]), LAYOUT_FIELDS)
            self.assertEqual(set(plan["terms"]), TERMS)
            self.assertAlmostEqual(
                sum(plan["terms"].values()), plan["step_time_s"], delta=1e-9 * plan["step_time_s"]
            )
            self.assertAlmostEqual(sum(plan["memory"].values()), plan["peak_memory_bytes"], delta=1)
            self.assertLessEqual(plan["peak_memory_bytes"],
                                 plan["memory_bound"]["upper_bound_bytes"])
            self.assertLessEqual(plan["memory_bound"]["upper_bound_bytes"], plan["capacity_bytes"])
            self.assertAlmostEqual(plan["tokens_per_s"] * plan["step_time_s"], 524288, delta=1)
            self.assertTrue(0 < plan["mfu"] < 1 and 0 <= plan["bubble_fraction"] < 1)
            layout = plan["layout"]
            self.assertEqual(
                layout["dp_replicate"] * layout["dp_shard"] * layout["tp"] * layout["pp"], 8
            )
            self.assertEqual(sum(layout["stages"]), 32)
        times = [plan["step_time_s"] for plan in document["plans"]]
        self.assertEqual(times, sorted(times))

    def test_errors(self):
        for command in (
            ["plan", *LLAMA, "--layout", "tp=3", "--json"],
            ["explain", "none.json", "--json"],
            ["plan", *LLAMA, "--frobnicate", "--json"],
            ["plan", *LLAMA, "--seq-len", "0", "--json"],
        ):
            done = self.run_program(*command)
            self.assertEqual(done.returncode, 2)
            document = json.loads(done.stdout)
            self.assertEqual(document["schema_version"], 1)
            self.assertTrue(document["errors"])
            for error in document["errors"]:
                self.assertEqual(set(error), {"where", "field", "value", "rule", "remedy"})
                self.assertTrue(error["where"] and error["rule"])
            self.assertTrue(done.stderr)
        errors = json.loads(self.run_program("plan", *LLAMA, "--layout", "tp=3", "--json").stdout)[
            "errors"
        ]
        self.assertIn(
            {
                "where": "/layout/tp",
                "field": "tp",
                "value": "3",
                "rule": "must divide the 64 attention heads",
                "remedy": "use tp=2 or tp=4",
            },
            errors,
        )

    def test_explain_and_simulate(self):
        explained = json.loads(
            self.run_program("explain", str(self.plan), "--rank", "1", "--json").stdout
        )
        self.assertEqual(explained["rank"], 1)
        self.assertEqual(set(explained["terms"]), TERMS)
        self.assertEqual(explained["plan_hash"], json.loads(self.plan.read_text())["plan_hash"])
        for axis in explained["traffic"]:
            self.assertEqual(
                set(axis), {"axis", "link", "group_size", "operations", "payload_bytes"}
            )
        trace = self.folder / "trace.json"
        done = self.run_program("simulate", str(self.plan), "--trace", str(trace), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        simulated = json.loads(done.stdout)
        predicted = json.loads(self.plan.read_text())["predicted"]
        self.assertEqual(
            simulated["step_time_s"], predicted["step_time_s"]
        )  # the same prediction, again
        self.assertTrue(json.loads(trace.read_text())["traceEvents"])

    def test_a_plan_is_the_same_twice(self):
        def decision():
            document = json.loads(self.run_program("plan", *SMALL, "--json").stdout)
            del document["elapsed_s"]
            return document

        self.assertEqual(decision(), decision())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
