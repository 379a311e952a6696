"""Writes ``tests/data/xgrammar_suite.jsonl.gz``: what XGrammar's own tests ask, and its answers.

Its tests of structural tags, ``TagDispatch`` and tokens are run under observation: every tag and
grammar that they make is noted, with the texts and tokens that are read under it and what comes of
them. No code of theirs is kept, only what goes in and what comes out. Tests that fail or are
skipped, for want of a tokenizer or a renderer from the network, leave nothing; where any tokenizer
will do there is one of single bytes, and what it reads is noted as text. The tests are in the
source distribution; run this anew when XGrammar's version changes:

    $ pip download --no-deps --no-binary xgrammar xgrammar==0.2.9 && tar xzf xgrammar-0.2.9.tar.gz
    $ python tests/differential/record_xgrammar_suite.py xgrammar-0.2.9/tests

The first line of the file says where it is from. Each other line is a case:

- ``case``, the test that made it first, and a number; ``tag`` (JSON text of a structural tag) or
  ``ebnf``; ``tokens``, ``stops`` where there is a vocabulary; ``error`` where it is refused, else:
- ``texts``: each "accepted", "prefix" (some text goes on from here) or "refused";
- ``walks``: other ways through it, by steps: ``["text", text, taken]``, ``["token", id, taken]``,
  ``["mask", ids]``, ``["back", steps]``, ``["end", complete]``.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
import sys
import types
from collections import Counter
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import xgrammar as xgr
from xgrammar import testing
from xgrammar.grammar import _get_structural_tag_str_from_args

FILE = Path(__file__).resolve().parents[1] / "data" / "xgrammar_suite.jsonl.gz"
MACROS = re.compile(r"\b(TagDispatch|TokenTagDispatch|Token|ExcludeToken)\s*\(")
HEADER = {
    "source": "XGrammar's test suite, https://github.com/mlc-ai/xgrammar, tests/python",
    "version": metadata.version("xgrammar"),
    "licence": "Apache-2.0; copyright the XGrammar contributors",
    "recorded by": "tests/differential/record_xgrammar_suite.py",
}
WITHOUT_NETWORK = re.compile(r"test_tag_dispatch_perf|test_reasoning_stag\[\w+-dsv(32|4)-")
BYTES = xgr.TokenizerInfo(
    [bytes([byte]) for byte in range(256)], xgr.VocabType.RAW, stop_token_ids=[]
)

Json = dict[str, Any]
Step = list[Any]


class ByteTokenizer:
    """In place of one from the network, where a test asks no more of it than this."""

    def encode(self, text: str, **options: Any) -> list[int]:
        return list(text.encode())


class Walk:
    """What a matcher was asked, as steps."""

    def __init__(self, case: Json, steps: list[Step], is_known: bool = True) -> None:
        self.case, self.steps, self.is_known = case, steps, is_known


class Recorder:
    """Notes while a test runs; keeps the notes if it passes."""

    def __init__(self) -> None:
        self.kept: dict[str, Json] = {}
        self.tests: Counter[str] = Counter()
        self.cases: list[Json] = []
        self.walks: list[tuple[Walk, Any]] = []
        self.test = ""
        self.depth = 0

    # -------------------------------------------------------------- what is asked

    def case(self, source: Json, info: Any) -> Json:
        case = {"case": self.test, **source, "walks": []}
        if info is not None and info is not BYTES and info.vocab_size:
            case["tokens"] = [written(token) for token in info.decoded_vocab]
            case["stops"] = sorted(info.stop_token_ids)
        self.cases.append(case)
        return case

    def made(self, source: Json, make: Callable[[], Any], info: Any = None) -> Any:
        """What is made of a source; an error is a case of its own."""
        self.depth += 1
        try:
            result = make()
        except (RuntimeError, ValueError):
            if self.depth == 1:
                self.case(source, info)["error"] = True
            raise
        finally:
            self.depth -= 1
        case = self.case(source, info)
        result.source = source
        if info is not None:  # it is compiled
            result.walk = Walk(case, [])
        return result

    def begins(self, walk: Walk | None, matcher: Any) -> None:
        """A walk goes on in a matcher."""
        if walk is not None:
            matcher.walk = Walk(walk.case, list(walk.steps), walk.is_known)
            self.walks.append((matcher.walk, matcher))

    def note(self, matcher: Any, *step: Any) -> None:
        walk = getattr(matcher, "walk", None)
        if walk is not None:
            walk.steps.append(list(step))

    def lose(self, matcher: Any) -> None:
        """It went where no step leads."""
        walk = getattr(matcher, "walk", None)
        if walk is not None:
            walk.is_known = False

    # ------------------------------------------------------------------ each test

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        for item in items:
            if WITHOUT_NETWORK.search(item.name):
                item.own_markers = [mark for mark in item.own_markers if mark.name != "skip"]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        self.test = f"{item.path.stem}::{item.originalname}"
        self.cases, self.walks = [], []
        outcome = yield
        if outcome.excinfo is not None:
            self.tests["failed or skipped"] += 1
        elif self.cases:
            self.tests["recorded"] += 1
            self.keep()
        self.cases, self.walks = [], []

    def keep(self) -> None:
        for walk, matcher in self.walks:
            if walk.is_known and walk.steps:
                if not ended(walk):
                    walk.steps.append(["end", matcher.is_completed()])
                walk.case["walks"].append(walk.steps)
        for case in self.cases:
            walks = case.pop("walks")
            key = json.dumps({name: case[name] for name in sorted(case) if name != "case"})
            kept = self.kept.setdefault(key, {**case, "texts": {}, "walks": []})
            for steps in walks:
                told = as_text(steps)
                if told is not None:
                    kept["texts"].update([told])
                elif steps not in kept["walks"]:
                    kept["walks"].append(steps)

    # ---------------------------------------------------------------------- hooks

    def watch(self) -> None:
        """Put ourselves between the tests and XGrammar."""
        grammar, compiler, matcher = xgr.Grammar, xgr.GrammarCompiler, xgr.GrammarMatcher

        def from_ebnf(make: Any, text: str, *args: Any, **options: Any) -> Any:
            if not MACROS.search(text):
                return make(text, *args, **options)
            root = options.get("root_rule_name", args[0] if args else "root")
            source = {"ebnf": text, **({"root": root} if root != "root" else {})}
            return self.made(source, lambda: make(text, *args, **options))

        def from_tag(make: Any, *args: Any, **options: Any) -> Any:
            source = {"tag": _get_structural_tag_str_from_args(list(args), options)}
            return self.made(source, lambda: make(*args, **options))

        def combined(make: Any, *parts: Any) -> Any:
            result = make(*parts)
            if any(hasattr(part, "source") for part in parts):
                result.source = {"ebnf": str(result)}
            return result

        def begun_compiler(make: Any, this: Any, *args: Any, **options: Any) -> None:
            make(this, *args, **options)
            this.info = args[0] if args else options["tokenizer_info"]

        def compile_tag(make: Any, this: Any, *args: Any, **options: Any) -> Any:
            source = {"tag": _get_structural_tag_str_from_args(list(args), options)}
            return self.made(source, lambda: make(this, *args, **options), this.info)

        def compile_grammar(make: Any, this: Any, what: Any, *args: Any, **options: Any) -> Any:
            if isinstance(what, str):
                source = {"ebnf": what} if MACROS.search(what) else None
            else:
                source = getattr(what, "source", None)
            if source is None:
                return make(this, what, *args, **options)
            return self.made(source, lambda: make(this, what, *args, **options), this.info)

        def begin(make: Any, this: Any, compiled: Any, *args: Any, **options: Any) -> None:
            make(this, compiled, *args, **options)
            if not args and options.get("override_stop_tokens") is None:
                self.begins(getattr(compiled, "walk", None), this)

        def text(make: Any, this: Any, what: str | bytes, **options: Any) -> bool:
            taken = bool(make(this, what, **options))
            if hasattr(this, "walk"):
                self.note(this, "text", written(what), taken)
            return taken

        def token(make: Any, this: Any, which: int, **options: Any) -> bool:
            taken = bool(make(this, which, **options))
            walk = getattr(this, "walk", None)
            if walk is not None and "tokens" not in walk.case:  # of BYTES
                self.note(this, "text", chr(which), taken)
            else:
                self.note(this, "token", which, taken)
            return taken

        def mask(make: Any, this: Any, bitmask: Any, index: int = 0, **options: Any) -> bool:
            needed = bool(make(this, bitmask, index, **options))
            walk = getattr(this, "walk", None)
            if walk is not None and "tokens" in walk.case:
                size = len(walk.case["tokens"])
                refused = testing._get_masked_tokens_from_bitmask(bitmask, size, index)
                self.note(this, "mask", sorted(set(range(size)) - set(refused if needed else ())))
            return needed

        def back(make: Any, this: Any, steps: int = 1) -> None:
            make(this, steps)
            self.note(this, "back", steps)

        def fork(make: Any, this: Any) -> Any:
            copy = make(this)
            self.begins(getattr(this, "walk", None), copy)
            return copy

        def elsewhere(make: Any, this: Any, *args: Any, **options: Any) -> Any:
            self.lose(this)
            return make(this, *args, **options)

        def many(make: Any, *args: Any, **options: Any) -> Any:
            for each in args[0] if isinstance(args[0], list) else args[1]:
                self.lose(each)
            return make(*args, **options)

        for owner, name, between in (
            (grammar, "from_ebnf", from_ebnf),
            (grammar, "from_structural_tag", from_tag),
            (grammar, "union", combined),
            (grammar, "concat", combined),
            (compiler, "__init__", begun_compiler),
            (compiler, "compile_structural_tag", compile_tag),
            (compiler, "compile_grammar", compile_grammar),
            (matcher, "__init__", begin),
            (matcher, "accept_string", text),
            (matcher, "accept_token", token),
            (matcher, "fill_next_token_bitmask", mask),
            (matcher, "rollback", back),
            (matcher, "fork", fork),
            (matcher, "reset", elsewhere),
            (matcher, "traverse_draft_tree", elsewhere),
            (xgr.BatchGrammarMatcher, "batch_accept_token", many),
            (xgr.BatchGrammarMatcher, "batch_accept_string", many),
            (xgr.BatchGrammarMatcher, "batch_rollback", many),
            (testing, "_ebnf_to_grammar_no_normalization", from_ebnf),
        ):
            put_between(owner, name, between)


def not_here(*args: Any, **options: Any) -> None:
    raise FileNotFoundError("the recorder asks nothing of the network")


def put_between(owner: Any, name: str, between: Callable[..., Any]) -> None:
    raw = vars(owner)[name]
    is_static = isinstance(raw, staticmethod)
    make = raw.__func__ if is_static else raw

    @functools.wraps(make)
    def replaced(*args: Any, **options: Any) -> Any:
        return between(make, *args, **options)

    setattr(owner, name, staticmethod(replaced) if is_static else replaced)


def written(text: str | bytes) -> str:
    """As JSON has it. A test with bytes that are no text fails, and is left out."""
    return text if isinstance(text, str) else text.decode()


def ended(walk: Walk) -> bool:
    """Whether a stop token was the last thing taken."""
    moves = [step for step in walk.steps if step[0] == "back" or step[-1] is True]
    return bool(moves) and moves[-1][0] == "token" and moves[-1][1] in walk.case["stops"]


def as_text(steps: list[Step]) -> tuple[str, str] | None:
    """A walk that reads texts and nothing else, as one text and what comes of it."""
    *texts, (_, complete) = steps if steps[-1][0] == "end" else [*steps, ["", None]]
    if complete is None or any(step[0] != "text" for step in texts):
        return None
    taken = [step[2] for step in texts]
    if not all(taken[:-1]):
        return None
    verdict = "refused" if not taken[-1] else "accepted" if complete else "prefix"
    return "".join(step[1] for step in texts), verdict


def main(folder: Path) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    sys.path.insert(0, str(folder / "python"))
    loader = types.ModuleType("tokenizer_utils")
    loader.__dict__["load_tokenizer"] = lambda *args, **options: ByteTokenizer()
    for name in ("load_config", "load_model_file", "local_model_path"):
        loader.__dict__[name] = not_here
    sys.modules["tokenizer_utils"] = loader
    put_between(xgr.TokenizerInfo, "from_huggingface", lambda make, *args, **options: BYTES)
    about = re.compile(rf"structural_tag|{MACROS.pattern}")
    files = [
        str(file)
        for file in sorted((folder / "python").glob("test_*.py"))
        if about.search(file.read_text(encoding="utf-8"))
    ]
    recorder = Recorder()
    recorder.watch()
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", f"--rootdir={folder}"]
    pytest.main([*options, *files], plugins=[recorder])
    numbers = Counter[str]()
    cases = []
    for case in recorder.kept.values():
        function = case["case"].split("::")[1]
        numbers[function] += 1
        case["case"] += f"-{numbers[function]}"
        # in an order that does not depend on that of the tests
        case["texts"] = dict(sorted(case["texts"].items()))
        cases.append({key: case[key] for key in case if case[key] or key in ("tokens", "stops")})
    lines = [json.dumps(each, ensure_ascii=False) for each in (HEADER, *cases)]
    data = ("\n".join(lines) + "\n").encode()
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(gzip.compress(data, 9, mtime=0))
    count = Counter[str]()
    for case in cases:
        count["refused with an error"] += "error" in case
        count["tags" if "tag" in case else "grammars"] += 1
        count["texts"] += len(case.get("texts", ()))
        count["walks"] += len(case.get("walks", ()))
    print(dict(recorder.tests), dict(count), f"{len(data)} bytes, {FILE.stat().st_size} on disk")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
