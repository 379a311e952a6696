"""XGrammar over classes against plain XGrammar: time of a mask along a text, in one run.

    python benches/python/bench_xgrammar.py --tokenizer path/to/model

Over classes: fill and unfold to the full row, at every step of the text, on a grammar just
compiled and once more. Plain masks are slow, so they are made at ``--plain-steps`` steps spread
evenly over the text; each is compared with ours bit for bit. Where a bit differs, plain XGrammar's
own ``accept_token`` is the judge: its mask contradicts it now and then
(docs/design/xgrammar.md, "Exactness contract"). Bits where ours is wrong are counted apart, and end
the run with an error. One thread.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import bench_common as common
import numpy as np
import xgrammar as xgr
from tokfold import Vocabulary
from tokfold import xgrammar as txgr
from tokfold.cli.render import number, seconds

Result = dict[str, Any]


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__.splitlines()[0])
    parser.add_argument("--plain-steps", type=int, default=60, help="plain masks for each grammar")
    parser.add_argument("--repeat", type=int, default=3, help="cold runs; the median one counts")
    options = parser.parse_args()
    report: Result = {"machine": common.machine(), "rows": []}
    for name, vocabulary in common.tokenizers(options).items():
        info = xgr.TokenizerInfo(
            list(vocabulary.token_bytes),
            vocab_type=xgr.VocabType.RAW,
            vocab_size=len(vocabulary),
            stop_token_ids=list(vocabulary.stop_token_ids),
        )
        for grammar in options.grammars:
            row = _measure(options, grammar, vocabulary, info)
            report["rows"].append({"grammar": grammar, "tokenizer": name, **row})
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _show(report)
    if any(row["plain"]["wrong"] for row in report["rows"]):
        raise SystemExit("error: masks over classes are wrong where XGrammar's are right")


def _measure(
    options: argparse.Namespace, grammar: str, vocabulary: Vocabulary, info: Any
) -> Result:
    text = common.grammar_text(options.grammar_dir, grammar)
    tokens = vocabulary.encode_greedy(common.sample_text(options.grammar_dir, grammar))
    compiler = txgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    compiler.compile_grammar('root ::= "a"')  # reads the tokenizer, once for all grammars
    rows = np.zeros((len(tokens) + 1, (info.vocab_size + 31) // 32), dtype=np.int32)
    runs = []
    for _ in range(options.repeat):
        began = time.perf_counter()
        compiled = compiler.compile_grammar(text)
        compile_seconds = time.perf_counter() - began
        cold = _fill(txgr.GrammarMatcher(compiled), tokens, rows)
        warm = _fill(txgr.GrammarMatcher(compiled), tokens, rows)
        runs.append((float(cold.mean()), compile_seconds, cold, warm))
    runs.sort(key=lambda run: run[0])
    _, compile_seconds, cold, warm = runs[len(runs) // 2]
    plain = _plain(text, tokens, rows, info, options.plain_steps)
    return {
        "steps": len(tokens) + 1,
        "classes": len(compiled.classes) if compiled.is_compressed else None,
        "compile_seconds": compile_seconds,
        "cold": _summary(cold),
        "warm": _summary(warm),
        "plain": plain,
        "times_faster": plain["mean"] / float(cold.mean()),
        "times_faster_warm": plain["mean"] / float(warm.mean()),
    }


def _fill(matcher: Any, tokens: list[int], rows: Any) -> Any:
    """Time of the mask before each token and after the last."""
    times = np.zeros(len(tokens) + 1)
    for index in range(len(tokens) + 1):
        began = time.perf_counter()
        matcher.fill_next_token_bitmask(rows, index)
        times[index] = time.perf_counter() - began
        if index < len(tokens) and not matcher.accept_token(tokens[index]):
            raise SystemExit(f"error: the text is refused at token {index}")
    return times


def _plain(text: str, tokens: list[int], rows: Any, info: Any, steps: int) -> Result:
    began = time.perf_counter()
    compiled = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False).compile_grammar(text)
    compile_seconds = time.perf_counter() - began
    matcher = xgr.GrammarMatcher(compiled)
    last = len(tokens)
    chosen = {index * last // max(1, steps - 1) for index in range(min(steps, last + 1))}
    row = np.zeros((1, rows.shape[1]), dtype=np.int32)
    times, explained, wrong = [], 0, 0
    for index in range(last + 1):
        if index in chosen:
            began = time.perf_counter()
            matcher.fill_next_token_bitmask(row)
            times.append(time.perf_counter() - began)
            right, others = _differences(matcher, rows[index], row[0], info)
            explained += bool(right) and not others
            wrong += bool(others)
        if index < last:
            matcher.accept_token(tokens[index])
    return {
        **_summary(np.array(times)),
        "steps": len(times),
        "explained": explained,
        "wrong": wrong,
        "compile_seconds": compile_seconds,
    }


def _differences(matcher: Any, ours: Any, plain: Any, info: Any) -> tuple[int, int]:
    """Bits that differ: where plain XGrammar contradicts its own accept_token, and all others."""
    counts = [0, 0]
    bits = _clean(ours, info)
    for token in np.flatnonzero(bits != _clean(plain, info)).tolist():
        accepted = bool(matcher.accept_token(token))
        if accepted:
            matcher.rollback(1)
        counts[bool(bits[token]) != accepted] += 1
    return counts[0], counts[1]


def _clean(row: Any, info: Any) -> Any:
    """The bits of tokens; those past the vocabulary say nothing."""
    return np.unpackbits(row.view(np.uint8), bitorder="little")[: info.vocab_size]


def _summary(times: Any) -> dict[str, float]:
    names = {"p50": 50, "p99": 99, "slowest": 100}
    found = {name: float(np.percentile(times, level)) for name, level in names.items()}
    return {"mean": float(times.mean()), **found}


def _show(report: Result) -> None:
    out = common.console()
    found = report["machine"]
    out.print(f"{found['processor']}, {found['cores']} cores, Python {found['python']}; one thread")
    out.print()
    columns = ["", ">masks", ">mean", ">p50", ">p99", ">x faster"]
    for row in report["rows"]:
        plain = row["plain"]
        lines = [
            ("over classes", row["steps"], row["cold"], f"{row['times_faster']:,.0f}"),
            ("over classes, again", row["steps"], row["warm"], f"{row['times_faster_warm']:,.0f}"),
            ("plain", plain["steps"], plain, ""),
        ]
        cells = [
            [what, number(count), *(seconds(times[key]) for key in ("mean", "p50", "p99")), ratio]
            for what, count, times, ratio in lines
        ]
        common.show(out, f"A mask of {row['grammar']}, {row['tokenizer']}", columns, cells)
    cells = [
        [
            row["grammar"],
            row["tokenizer"],
            "-" if row["classes"] is None else number(row["classes"]),
            seconds(row["compile_seconds"]),
            seconds(row["plain"]["compile_seconds"]),
            f"{row['plain']['steps'] - row['plain']['explained'] - row['plain']['wrong']}"
            f" of {row['plain']['steps']}",
            number(row["plain"]["explained"]),
            number(row["plain"]["wrong"]),
        ]
        for row in report["rows"]
    ]
    columns = ["", "", ">classes", ">compile", ">plain", ">equal"]
    columns += [">explained", ">wrong"]
    common.show(out, "Compiling, and masks that are equal bit for bit", columns, cells)


if __name__ == "__main__":
    main()
