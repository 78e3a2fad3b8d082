# SPDX-License-Identifier: Apache-2.0
"""Keeps the direction of the folders.

sim and gui know nothing of exec or LibTorch, and sim's own folders form layers.

Usage: include_lint.py PROJECT_ROOT. Exits 1 and names every include that points the wrong way.
"""

import pathlib
import re
import sys

# A folder of sim may include itself and those before it. Plan files carry a prediction, so that
# report stands beside plan, and its sources may look at the schedule.
SIM_LAYERS = [
    {"core"},
    {"launch", "protocol"},
    {"spec", "graph"},
    {"mesh"},
    {"plan", "report", "schedule"},
    {"memory", "data", "step"},
    {"search"},
    {"cost"},
    {"simulator"},
    {"planner"},
    {"advice", "parity"},
    {"fit", "validate"},
    {"cli"},
]
# spec names operators (a calibration's samples), and graph reads plans.
EXCEPTIONS = {("graph", "plan"), ("graph", "mesh")}
TORCH = re.compile(r"^(exec/|torch/|ATen/|c10/|c10d/)")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
SOURCES = {".h", ".cpp", ".cu", ".cuh"}


def layer(folder):
    for i, names in enumerate(SIM_LAYERS):
        if folder in names:
            return i
    return None


def problems(root):
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        top = name.split("/")[0]
        if path.suffix not in SOURCES or top not in {"sim", "gui", "exec", "kernels", "tests"}:
            continue
        for include in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if include == "torch/torch.h":
                yield f"{name}: includes torch/torch.h, which takes a minute to compile"
            if top in {"sim", "gui"} and TORCH.match(include):
                yield f"{name}: includes {include}, but {top} must not know exec or LibTorch"
            if top == "kernels" and include.startswith(("sim/", "exec/")):
                yield f"{name}: includes {include}, but kernels stand alone"
            if top == "sim" and include.startswith("sim/"):
                own, other = name.split("/")[1], include.split("/")[1]
                if own == other or (own, other) in EXCEPTIONS:
                    continue
                if layer(own) is None or layer(other) is None:
                    unknown = own if layer(own) is None else other
                    yield f"{name}: folder sim/{unknown} has no layer in this test"
                elif layer(other) > layer(own):
                    yield f"{name}: includes {include}, but sim/{own} is below sim/{other}"


def main():
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found) if found else "all includes point the right way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
