"""One measurement in a process of its own: texts to classes, times and peak memory.

Run by bench_classes.py with one JSON job on standard input; prints one JSON result a line. A fresh
process keeps memory of one measurement out of the next, and can be stopped by a time limit whatever
it is doing.
"""

from __future__ import annotations

import json
import pickle
import resource
import sys
import time
from pathlib import Path
from typing import Any

from tokfold import Grammar, Vocabulary, compile_classes


def measure(job: dict[str, Any]) -> None:
    """Fold the vocabulary under each text of the job, ``repeat`` times; print a line for each."""
    vocabulary: Vocabulary = pickle.loads(Path(job["vocabulary"]).read_bytes())
    _ = vocabulary.fingerprint, vocabulary._compiled  # loaded means: ready to be walked
    for text in job["texts"]:
        before = _reset_peak()
        elapsed, classes = _timed(text, job["lookahead"], vocabulary)
        result: dict[str, Any] = {
            "seconds": [elapsed],
            "classes": len(classes),
            "peak_bytes": _peak() - before,
            "stats": classes.stats,
            "text_bytes": len(text.encode()),
        }
        del classes
        for _ in range(job["repeat"] - 1):
            result["seconds"].append(_timed(text, job["lookahead"], vocabulary)[0])
        print(json.dumps(result), flush=True)


def _timed(text: str, lookahead: Any, vocabulary: Vocabulary) -> tuple[float, Any]:
    began = time.perf_counter()
    grammar = Grammar.from_ebnf(text, lookahead=lookahead)
    classes = compile_classes(grammar, vocabulary)
    return time.perf_counter() - began, classes


def _reset_peak() -> int:
    """Resident memory now, in bytes; where the system allows it the peak starts from here."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _peak()
    return _status("VmRSS") or _peak()


def _peak() -> int:
    """Peak resident memory in bytes."""
    found = _status("VmHWM")
    if found is not None:
        return found
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return None


if __name__ == "__main__":
    measure(json.load(sys.stdin))
