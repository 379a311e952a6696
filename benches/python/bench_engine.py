"""Engines side by side: every mask and accept along a text, in one run, one thread.

    python benches/python/bench_engine.py --tokenizer path/to/model

Our engine without classes, with classes just compiled (nothing warmed), and as
``compile(classes="now")`` leaves it; XGrammar over our classes; plain XGrammar (slow: masks at
``--plain-steps`` steps spread over the text); llguidance, where it is installed. Masks are rows
over the full vocabulary, unfolding included. "Start" is from grammar text to the first mask, the
vocabulary loaded.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import bench_common as common
import numpy as np
import tokfold
from tokfold import Vocabulary
from tokfold.cli.render import number, seconds

Result = common.Result
Fill = Callable[[], object]
Accept = Callable[[int], bool]


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__.splitlines()[0])
    parser.add_argument("--plain-steps", type=int, default=60, help="masks of plain XGrammar")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), metavar="NAME")
    options = parser.parse_args()
    report: Result = {"machine": common.machine(), "rows": []}
    for name, vocabulary in common.tokenizers(options).items():
        bench = Bench(options, vocabulary)
        for grammar in options.grammars:
            for row in bench.grammar(grammar):
                report["rows"].append({"grammar": grammar, "tokenizer": name, **row})
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _show(report)


class Bench:
    """One vocabulary and what is made of it once."""

    def __init__(self, options: argparse.Namespace, vocabulary: Vocabulary) -> None:
        self.options, self.vocabulary = options, vocabulary
        self.words = (len(vocabulary) + 31) // 32
        # The trie of the vocabulary is made by the first engine that needs it, for all.
        self.first_ours("root ::= [^]*", "never")
        self.info: Any = None
        self.guidance: Any = None

    def grammar(self, name: str) -> Iterator[Result]:
        """The rows of one grammar."""
        text = common.grammar_text(self.options.grammar_dir, name)
        tokens = self.vocabulary.encode_greedy(common.sample_text(self.options.grammar_dir, name))
        for engine in self.options.engines:
            try:
                yield {
                    "engine": engine,
                    "tokens": len(tokens),
                    **ENGINES[engine](self, text, tokens),
                }
            except ImportError as error:
                yield {"engine": engine, "failure": f"not installed: {error.name}"}
            except Exception as error:  # a peer that gives up is a result
                yield {"engine": engine, "failure": str(error).splitlines()[0][:26]}

    def first_ours(self, text: str, classes: Any) -> tuple[Any, float]:
        """A compiled grammar, and the seconds from text to the first mask."""
        row = np.zeros((1, self.words), dtype=np.int32)
        began = time.perf_counter()
        grammar = tokfold.Grammar.from_ebnf(text)
        compiled = tokfold.compile(grammar, self.vocabulary, classes=classes)
        tokfold.Matcher(compiled).fill_bitmask(row)
        return compiled, time.perf_counter() - began

    def ours(self, text: str, tokens: list[int], classes: str) -> Result:
        """Our engine."""
        if classes == "cold":
            # Classes as a server that compiles them for each request has them: nothing is warm.
            made = tokfold.compile_classes(tokfold.Grammar.from_ebnf(text), self.vocabulary)
            compiled, start = self.first_ours(text, made)
            start += made.stats["seconds"]
            compiled, _ = self.first_ours(text, made)
            compiled._core.forget()
        else:
            compiled, start = self.first_ours(text, classes)
        row = np.zeros((1, self.words), dtype=np.int32)
        runs = []
        for _ in range(2):
            matcher = tokfold.Matcher(compiled)
            fill = partial(matcher.fill_bitmask, row)
            runs.append(_replay(tokens, fill, matcher.accept_token))
        held = compiled.counters()["bytes_held"] + matcher.counters()["bytes_held"]
        return {"start": start, "first": runs[0], "second": runs[1], "bytes": held}

    def xgrammar(self, text: str, tokens: list[int], over_classes: bool) -> Result:
        """XGrammar, over our classes or plain."""
        import xgrammar as plain
        from tokfold import xgrammar as folded

        if self.info is None:
            self.info = common.xgrammar_info(self.vocabulary)
        module: Any = folded if over_classes else plain
        compiler = module.GrammarCompiler(self.info, max_threads=1, cache_enabled=False)
        compiler.compile_grammar('root ::= "a"')  # reads the tokenizer, once
        row = plain.allocate_token_bitmask(1, len(self.vocabulary))
        began = time.perf_counter()
        compiled = compiler.compile_grammar(text)
        module.GrammarMatcher(compiled).fill_next_token_bitmask(row)
        start = time.perf_counter() - began
        every = 1 if over_classes else max(1, len(tokens) // self.options.plain_steps)
        runs = []
        for _ in range(2 if over_classes else 1):
            matcher = module.GrammarMatcher(compiled)
            fill = partial(matcher.fill_next_token_bitmask, row)
            runs.append(_replay(tokens, fill, matcher.accept_token, every))
        return {"start": start, "first": runs[0], "second": runs[-1] if over_classes else None}

    def llguidance(self, text: str, tokens: list[int]) -> Result:
        """The peer of that name, by its own converter."""
        import llguidance
        import llguidance.numpy as numpy_masks
        from llguidance.gbnf_to_lark import any_to_lark

        if self.guidance is None:
            self.guidance = common.llguidance_tokenizer(self.vocabulary)
        row = numpy_masks.allocate_token_bitmask(1, len(self.vocabulary))
        began = time.perf_counter()
        grammar = llguidance.LLMatcher.grammar_from_lark(any_to_lark(text))

        def fresh() -> Any:
            matcher = llguidance.LLMatcher(self.guidance, grammar)
            if matcher.get_error():
                raise RuntimeError(matcher.get_error())
            return matcher

        numpy_masks.fill_next_token_bitmask(fresh(), row, 0)
        start = time.perf_counter() - began
        runs = []
        for _ in range(2):
            matcher = fresh()
            fill = partial(numpy_masks.fill_next_token_bitmask, matcher, row, 0)
            runs.append(_replay(tokens, fill, matcher.consume_token))
        return {"start": start, "first": runs[0], "second": runs[1]}


def _replay(tokens: list[int], fill: Fill, accept: Accept, every: int = 1) -> Result:
    """Microseconds of each mask and each accept."""
    clock = time.perf_counter_ns
    masks: list[int] = []
    accepts: list[int] = []
    gc.collect()
    gc.disable()
    try:
        for step, token in enumerate(tokens):
            if step % every == 0:
                began = clock()
                fill()
                masks.append(clock() - began)
            began = clock()
            taken = accept(token)
            accepts.append(clock() - began)
            if not taken:
                raise RuntimeError(f"gave up at token {step} of {len(tokens)}")
    finally:
        gc.enable()
    return {"mask": common.summary(masks), "accept": common.summary(accepts)}


ENGINES: dict[str, Callable[[Bench, str, list[int]], Result]] = {
    "tokfold, no classes": lambda bench, *a: bench.ours(*a, "never"),
    "tokfold, cold classes": lambda bench, *a: bench.ours(*a, "cold"),
    "tokfold": lambda bench, *a: bench.ours(*a, "now"),
    "XGrammar over classes": lambda bench, *a: bench.xgrammar(*a, True),
    "XGrammar": lambda bench, *a: bench.xgrammar(*a, False),
    "llguidance": lambda bench, *a: bench.llguidance(*a),
}


def _show(report: Result) -> None:
    out = common.console()
    first_columns = ["grammar", "engine", ">start", ">mean", ">p50", ">p99", ">faster"]
    again_columns = ["grammar", "engine", ">mask p50", ">p99", ">accept p50", ">p99", ">held"]
    first_rows, again_rows = [], []
    for row in report["rows"]:
        label = [row["grammar"], row["engine"]]
        if "failure" in row:
            first_rows.append([*label, "", "", "", "", row["failure"]])
            continue
        first, second = row["first"], row["second"]
        masks = [seconds(first["mask"][k]) for k in ("mean", "p50", "p99")]
        first_rows.append([*label, seconds(row["start"]), *masks, _ratio(report, row)])
        again = [seconds(second["mask"][k]) if second else "" for k in ("p50", "p99")]
        accept = [seconds(first["accept"][k]) for k in ("p50", "p99")]
        held = f"{row['bytes'] / 1e6:.1f} MB" if "bytes" in row else ""
        again_rows.append([*label, *again, *accept, held])
    common.show(out, "Masks along a text, first time", first_columns, first_rows)
    common.show(out, "Masks, second time; accepts, first time", again_columns, again_rows)
    out.print('"faster": mean mask of plain XGrammar in the same run by that of the engine.')


def _ratio(report: Result, row: Result) -> str:
    for other in report["rows"]:
        same = (other["grammar"], other["tokenizer"]) == (row["grammar"], row["tokenizer"])
        if same and other["engine"] == "XGrammar" and "first" in other:
            return (
                number(round(other["first"]["mask"]["mean"] / row["first"]["mask"]["mean"])) + "x"
            )
    return ""


if __name__ == "__main__":
    main()
