"""Run workloads in one system and print JSON lines: ``python -P main.py SCRIPT JOBS``.

``-P`` keeps this folder out of the module path, where ``duckdb.py`` would hide the package of that
name. What ``begin`` does is not timed (imports, Java, sessions), nor is one run over little data
before the first workload of a kind and number of windows, nor one run of the first workload over
all its data: Java compiles what has run for some seconds. A workload is repeated until it has been
run ``repeats`` times or for ``enough`` seconds; a request for one run needs no figures, and nothing
is run before it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import ModuleType


def main(script: str, jobs: str) -> None:
    """Begin, then run one workload after the other; report every step."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # What systems print on their own goes to the standard error; our lines have the standard output
    # for themselves.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(**event: object) -> None:
        print(json.dumps(event), file=lines, flush=True)

    peer = _load(script)
    wanted = json.loads(Path(jobs).read_text(encoding="utf-8"))
    system = peer.begin(wanted[0]["job"])
    tell(event="begun")
    warmed: set[tuple[str, int]] = set()
    for entry in wanted:
        kind = entry["job"]["kind"]
        if kind in peer.CANNOT:
            tell(event="done", cannot=peer.CANNOT[kind])
            continue
        form = (kind, len(entry["job"]["windows"]))
        if entry["repeats"] > 1 and form not in warmed:
            peer.run(system, entry["warm"])
            tell(event="warmed")
            if not warmed:
                peer.run(system, entry["job"])
            warmed.add(form)
        tell(event="warmed")
        spent = 0.0
        for _ in range(entry["repeats"]):
            start = time.perf_counter()
            results = peer.run(system, entry["job"])
            seconds = time.perf_counter() - start
            tell(event="run", seconds=seconds, results=results)
            spent += seconds
            if spent >= entry["enough"]:
                break
        tell(event="done")


def _end_with_parent() -> None:
    """End the process group, Java included, when the parent is gone and its pipe is closed."""
    sys.stdin.read()
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _load(script: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location("peer", script)
    assert specification is not None, "the script is a Python file"
    assert specification.loader is not None, "the script is a Python file"
    peer = importlib.util.module_from_spec(specification)
    sys.modules[peer.__name__] = peer  # dataclasses look for their module there
    specification.loader.exec_module(peer)
    return peer


if __name__ == "__main__":
    main(*sys.argv[1:])
