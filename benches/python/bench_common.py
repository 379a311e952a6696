"""What the Python benchmarks share: where grammars, texts and tokenizers are, and tables."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
GRAMMARS = ("json", "cpp", "bython")

Result = dict[str, Any]

# One thread each, and nothing that a fork would leave behind: set before numpy is imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

if not os.environ.get("PYTHONPATH"):
    # Without an installed tokfold the checkout's own package serves.
    sys.path.append(str(ROOT / "python"))

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
import tokfold  # noqa: E402
from tokfold import Vocabulary  # noqa: E402
from tokfold.cli.inputs import read_tokenizer  # noqa: E402
from tokfold.cli.render import table  # noqa: E402


def described(description: str) -> argparse.ArgumentParser:
    """A parser without options: what follows the first paragraph is shown below them."""
    head, _, rest = description.partition("\n\n")
    return argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def parser(description: str, *, writes: bool = False) -> argparse.ArgumentParser:
    """The options of every benchmark.

    Args:
        description: what follows its first paragraph is shown below the options.
        writes: the figures go to files, and tables are printed all the same.
    """
    result = described(description)
    result.add_argument(
        "--tokenizer",
        action="append",
        metavar="PATH",
        help="tokenizer file or folder, or tekken (the default: out of mistral-common)",
    )
    result.add_argument("--grammars", nargs="+", default=list(GRAMMARS), metavar="NAME")
    result.add_argument(
        "--grammar-dir",
        type=Path,
        default=ROOT / "grammars",
        help="holds NAME.gbnf or NAME/NAME.gbnf (default: the project's grammars)",
    )
    if not writes:
        result.add_argument("--json", action="store_true", help="print one JSON object, no tables")
        return result
    result.add_argument("--json", type=Path, metavar="OUT", help="write all figures there")
    add_results(result)
    return result


def add_results(result: argparse.ArgumentParser) -> None:
    """The options that :func:`keep` reads."""
    result.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="write KIND-MACHINE-DATE.md and .json there, to be kept",
    )
    result.add_argument("--machine", metavar="NAME", help="in these names (default: the processor)")


def tokenizers(options: argparse.Namespace) -> dict[str, Vocabulary]:
    """Vocabularies by the name of their tokenizer, in the order given."""
    result = {}
    for name in options.tokenizer or ["tekken"]:
        path = Path(name)
        label = path.parent.name if path.is_file() else path.name
        result[label] = read_tokenizer(name)
    return result


def grammar_text(folder: Path, name: str) -> str:
    """The text of a grammar of a folder, flat or with a folder for each."""
    for path in (folder / f"{name}.gbnf", folder / name / f"{name}.gbnf"):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    sys.exit(f"error: {folder} holds neither {name}.gbnf nor {name}/{name}.gbnf")


def sample_text(folder: Path, name: str) -> bytes:
    """A text of a grammar: ``texts/`` beside the folder, or ``bench.txt`` or the longest valid."""
    flat = folder.parent / "texts" / f"{name}.txt"
    if flat.is_file():
        return flat.read_bytes()
    texts = sorted(path for path in (folder / name / "valid").glob("*") if path.is_file())
    if not texts:
        sys.exit(f"error: there is no text for {name}: neither {flat} nor {name}/valid")
    named = [path for path in texts if path.stem == "bench"]
    return (named[0] if named else max(texts, key=lambda path: path.stat().st_size)).read_bytes()


Fill = Callable[[], object]


class Walk(NamedTuple):
    """One text on its way through one engine."""

    fill: Fill
    """Write the mask into the engine's row."""
    accept: Callable[[int], bool]
    trouble: Callable[[], str]
    """Why the engine has given up, where it says so without raising; else empty."""
    matcher: Any
    """The engine's own object."""


class Engine(Protocol):
    """One peer, with what a server makes of it at its start."""

    row: npt.NDArray[np.int32]
    """Where masks are written: one row."""

    def prepare(self, vocabulary: Vocabulary) -> None:
        """What is done once, before any request: loading, and a first use of everything."""

    def touch(self) -> None:
        """Use everything once more, and keep nothing of it.

        In a process just forked each page that is touched costs some microseconds, hundreds of
        them for a first grammar. A server has that behind it.
        """

    def compile_schema(self, schema: str) -> Any:
        """A JSON schema, ready for walks."""

    def compile_tag(self, tag: str) -> Any:
        """A structural tag, ready for walks."""

    def walk(self, compiled: Any) -> Walk:
        """Begin a text."""

    def batch(self, matchers: list[Any], rows: npt.NDArray[np.int32], threads: int) -> Fill:
        """What fills the rows of many matchers, for :attr:`Walk.matcher`."""


_SCHEMA = """{"type": "object", "required": ["b"], "properties": {
    "a": {"type": "string", "maxLength": 20},
    "b": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"enum": ["x", "yz"]}]}},
    "c": {"type": "string", "pattern": "^z+$"}, "d": {"type": "number"}, "e": {}}}"""
_TEXT = b'{"e": {"k": [true, "A text of some words"]}}'
_MEMBERS = ", ".join(rf'"{i}": ' + re.sub('"([a-e])"', rf'"\g<1>{i}"', _SCHEMA) for i in range(80))
# 480 members: memory of compiling is there for any schema but the largest.
_LARGE_SCHEMA = f'{{"type": "object", "properties": {{{_MEMBERS}}}}}'


def _exercise(engine: Engine, schema: str, vocabulary: Vocabulary) -> None:
    """Compile a schema, and walk as far as it takes a text."""
    walk = engine.walk(engine.compile_schema(schema))
    for token in vocabulary.encode_greedy(_TEXT):
        walk.fill()
        if not walk.accept(token):
            break


class TokfoldEngine:
    """Our engine.

    Args:
        classes: as for ``tokfold.compile``.
        schema: options of ``tokfold.Grammar.from_json_schema``.
        limits: fields of ``tokfold.Limits``.
        compile: fields of ``tokfold.CompileOptions``.
        warm: states whose masks are made when compiling.
    """

    def __init__(
        self,
        classes: str = "never",
        *,
        schema: dict[str, Any] | None = None,
        limits: dict[str, Any] | None = None,
        compile: dict[str, Any] | None = None,
        warm: int = 0,
    ) -> None:
        self.schema, self.warm = schema or {}, warm
        self.arguments: dict[str, Any] = {"classes": classes}
        self.options: dict[str, Any] = {**(compile or {})}
        if limits:
            self.arguments["limits"] = tokfold.Limits(**limits)

    def prepare(self, vocabulary: Vocabulary) -> None:
        """A first use of schemas, macros, masks and classes, and the vocabulary's trie.

        The pool is that of a compiler just made, as a server has it.
        """
        self.vocabulary = vocabulary
        if self.options.get("pool", "vocabulary") == "vocabulary":
            self.options["pool"] = tokfold.GrammarCompiler(vocabulary).pool
        self.row = np.zeros((1, (len(vocabulary) + 31) // 32), dtype=np.int32)
        self.touch()

    def touch(self) -> None:
        """What masks leave for other grammars goes into a pool that is thrown away."""
        options = self.options
        if options.get("pool") is not None:
            self.options = {**options, "pool": tokfold.MaskPool(self.vocabulary)}
        for schema in (_SCHEMA, _LARGE_SCHEMA):
            _exercise(self, schema, self.vocabulary)
        self.options = options

    def compile_schema(self, schema: str) -> Any:
        """From the text of the schema."""
        return self.compile(tokfold.Grammar.from_json_schema(schema, **self.schema))

    def compile_tag(self, tag: str) -> Any:
        """From the text of the structural tag."""
        return self.compile(tokfold.Grammar.from_structural_tag(tag))

    def add_tags(self, compiled: Any, tags: list[Any]) -> Any:
        """The structural tag with more tags in its free text."""
        return self.compile(compiled.grammar.with_tags(tags))

    def compile(self, grammar: tokfold.Grammar) -> tokfold.CompiledGrammar:
        """A grammar under the options of this engine."""
        options = tokfold.CompileOptions(**self.options)
        compiled = tokfold.compile(grammar, self.vocabulary, **self.arguments, options=options)
        if self.warm:
            compiled.warm(self.warm)
        return compiled

    def walk(self, compiled: Any) -> Walk:
        """Begin a text."""
        matcher = tokfold.Matcher(compiled)
        fill = partial(matcher.fill_bitmask, self.row)
        return Walk(fill, matcher.accept_token, _no_trouble, matcher)

    def batch(self, matchers: list[Any], rows: npt.NDArray[np.int32], threads: int) -> Fill:
        """What fills the rows of many matchers."""
        return partial(tokfold.fill_bitmask_batch, matchers, rows, threads=threads)


class XgrammarEngine:
    """Plain XGrammar, one thread, its cache as it comes (switched on).

    Args:
        strict: objects take only the properties that the schema names, unless it says otherwise.
    """

    def __init__(self, *, strict: bool = True) -> None:
        self.strict = strict

    def prepare(self, vocabulary: Vocabulary) -> None:
        """Tokenizer and compiler."""
        import xgrammar

        self.module = xgrammar
        self.vocabulary = vocabulary
        self.compiler = xgrammar.GrammarCompiler(xgrammar_info(vocabulary), max_threads=1)
        self.row = np.zeros((1, (len(vocabulary) + 31) // 32), dtype=np.int32)
        self.touch()

    def touch(self) -> None:
        """A small schema: it takes some tenths of a second for what the others use here."""
        _exercise(self, '{"enum": [{"e": 1}, {"e": [2]}]}', self.vocabulary)
        self.compiler.clear_cache()

    def compile_schema(self, schema: str) -> Any:
        """Every mask that can be made ahead of time is."""
        return self.compiler.compile_json_schema(schema, strict_mode=self.strict)

    def compile_tag(self, tag: str) -> Any:
        """As :meth:`compile_schema`."""
        return self.compiler.compile_structural_tag(tag)

    def walk(self, compiled: Any) -> Walk:
        """Begin a text."""
        matcher = self.module.GrammarMatcher(compiled)
        fill = partial(matcher.fill_next_token_bitmask, self.row)
        return Walk(fill, matcher.accept_token, _no_trouble, matcher)

    def batch(self, matchers: list[Any], rows: npt.NDArray[np.int32], threads: int) -> Fill:
        """What fills the rows of many matchers."""
        batch = self.module.BatchGrammarMatcher(max_threads=threads)
        return partial(batch.batch_fill_next_token_bitmask, matchers, rows)


class LlguidanceEngine:
    """llguidance, with the slices of the vocabulary that are its default.

    Args:
        tokenizer: what cuts the texts, file or folder. Where a text is forced its mask allows only
            the token that its tokenizer would begin that text with, so it must be the same one.
        lenient: keywords and formats that it does not know are ignored; else it refuses them.
    """

    def __init__(self, tokenizer: str | None = None, *, lenient: bool = False) -> None:
        self.path, self.defaults = tokenizer, {"lenient": lenient}

    def prepare(self, vocabulary: Vocabulary) -> None:
        """Tokenizer with its slices."""
        import llguidance

        self.module = llguidance
        self.vocabulary = vocabulary
        self.tokenizer = llguidance_tokenizer(vocabulary, self.path)
        self.row = np.zeros((1, (len(vocabulary) + 31) // 32), dtype=np.int32)
        self.touch()

    def touch(self) -> None:
        """It has nothing that one grammar leaves for another."""
        for schema in (_SCHEMA, _LARGE_SCHEMA):
            _exercise(self, schema, self.vocabulary)

    def compile_schema(self, schema: str) -> Any:
        """A matcher that has read nothing; raises RuntimeError where it refuses."""
        grammar = self.module.LLMatcher.grammar_from_json_schema(schema, defaults=self.defaults)
        matcher = self.module.LLMatcher(self.tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise RuntimeError(matcher.get_error())
        return matcher

    def compile_tag(self, tag: str) -> Any:
        """There is no converter for XGrammar's structural tags."""
        raise RuntimeError("it has other structural tags")

    def walk(self, compiled: Any) -> Walk:
        """Begin a text: a copy shares what is known of the grammar's lexer."""
        matcher = compiled.deep_copy()
        # What its fill_next_token_bitmask calls, less two microseconds that numpy takes to say
        # where the row is.
        fill = partial(matcher.unsafe_compute_mask_ptr, self.row.ctypes.data, self.row.nbytes)
        return Walk(fill, matcher.consume_token, matcher.get_error, matcher)

    def batch(self, matchers: list[Any], rows: npt.NDArray[np.int32], threads: int) -> Fill:
        """What fills the rows of many matchers."""
        executor = self.module.LLExecutor(threads)
        numbered = [(matcher, row) for row, matcher in enumerate(matchers)]
        place, width, count = rows.ctypes.data, rows.shape[1] * 4, len(rows)
        return partial(executor.unsafe_compute_mask_ptr, numbered, place, width, count)


def _no_trouble() -> str:
    return ""


def xgrammar_info(vocabulary: Vocabulary) -> Any:
    """XGrammar's description of a tokenizer."""
    import xgrammar

    return xgrammar.TokenizerInfo(
        list(vocabulary.token_bytes),
        vocab_type=xgrammar.VocabType.RAW,
        vocab_size=len(vocabulary),
        stop_token_ids=list(vocabulary.stop_token_ids),
    )


def llguidance_tokenizer(vocabulary: Vocabulary, path: str | None = None) -> Any:
    """The description of a tokenizer that llguidance takes.

    Args:
        vocabulary: the vocabulary.
        path: of the tokenizer; by it texts are cut as :func:`encoder` does. Else greedily.
    """
    import llguidance

    file = tokenizer_json(path)
    if file is None:
        return llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(_LlguidanceVocabulary(vocabulary))
        )
    text = file.read_text(encoding="utf-8")
    stop = list(vocabulary.stop_token_ids)
    return llguidance.LLTokenizer(text, n_vocab=len(vocabulary), eos_token=stop)


def tokenizer_json(path: str | None) -> Path | None:
    """The file that the package ``tokenizers`` reads, where there are both."""
    if path is None or importlib.util.find_spec("tokenizers") is None:
        return None
    file = Path(path) / "tokenizer.json" if Path(path).is_dir() else Path(path)
    return file if file.name == "tokenizer.json" and file.is_file() else None


def encoder(vocabulary: Vocabulary, path: str) -> tuple[Callable[[str], list[int]], str]:
    """How a model sees a text, and a word for it: by its tokenizer, or greedily."""
    file = tokenizer_json(path)
    if file is None:
        return lambda text: vocabulary.encode_greedy(text.encode()), "cut greedily"
    from tokenizers import Tokenizer

    own = Tokenizer.from_file(str(file))
    encode = lambda text: list(own.encode(text, add_special_tokens=False).ids)  # noqa: E731
    return encode, "cut by the tokenizer"


class _LlguidanceVocabulary:
    """What llguidance asks of a tokenizer."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        stop = vocabulary.stop_token_ids
        self.eos_token_id = stop[0] if stop else 0
        self.bos_token_id = None
        self.tokens = [bytes(token) for token in vocabulary.token_bytes]
        self.special_token_ids = sorted({*stop, *vocabulary.special_token_ids})
        self._vocabulary = vocabulary

    def __call__(self, data: bytes | str) -> list[int]:
        return self._vocabulary.encode_greedy(data.encode() if isinstance(data, str) else data)


def summary(nanoseconds: Any, levels: tuple[float, ...] = (50, 99)) -> dict[str, float]:
    """Mean, percentiles and maximum, in seconds; empty where nothing was measured."""
    times = np.asarray(nanoseconds, dtype=np.float64) / 1e9
    if not len(times):
        return {}
    found = {f"p{level:g}": float(np.percentile(times, level)) for level in levels}
    return {"mean": float(times.mean()), **found, "max": float(times.max())}


def machine() -> Result:
    """What the figures were measured on."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {"processor": model, "cores": os.cpu_count(), "python": platform.python_version()}


def versions(*packages: str) -> dict[str, str]:
    """Versions of tokfold and of packages, as far as they are installed."""
    found = {"tokfold": tokfold.__version__}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


class Sheet(NamedTuple):
    """A table, for a terminal and for a file; columns as for :func:`show`."""

    title: str
    columns: list[str]
    rows: list[list[str]]


_began = time.monotonic()


def add(report: Result, row: Result) -> None:
    """Add a row to a report; a log, which no progress bar is shown in, names it and the second."""
    report["rows"].append(row)
    if not sys.stderr.isatty():
        label = ", ".join(str(value) for value in row.values() if isinstance(value, str | int))
        print(f"{time.monotonic() - _began:.1f} s: {label}", file=sys.stderr, flush=True)


class _Stopped(BaseException):
    """A request to stop: no handler of errors catches it."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM leaves the block, and what follows shows the figures so far."""

    def stop(number: int, frame: object) -> None:
        raise _Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except _Stopped:
        print("stopped: these are the figures so far", file=sys.stderr, flush=True)
    finally:
        signal.signal(signal.SIGTERM, before)


def publish(
    options: argparse.Namespace, kind: str, report: Result, sheets: list[Sheet], notes: list[str]
) -> None:
    """Print tables and notes, and write what ``--json`` and ``--results`` ask for.

    Args:
        options: of a :func:`parser` that writes.
        kind: which benchmark.
        report: all figures; with ``machine``, ``versions`` and ``date``.
        sheets: the tables.
        notes: a line each, after the tables.
    """
    notes = [*notes, *load(report)]
    out = console(width=120)
    out.print(_origin(report))
    out.print()
    for sheet in sheets:
        show(out, *sheet)
    for note in notes:
        out.print(note)
    if options.json:
        options.json.write_text(_as_json(report), encoding="utf-8")
    path = keep(options, kind, report, sheets, notes)
    if path:
        out.print(f"written: {path}.md, .json")


def keep(
    options: argparse.Namespace, kind: str, report: Result, sheets: list[Sheet], notes: list[str]
) -> Path | None:
    """Write the two files that ``--results`` asks for; their path without a suffix.

    Args:
        options: with the options of :func:`add_results`.
        kind: which benchmark.
        report: as for :func:`publish`.
        sheets: the tables.
        notes: a line each, after the tables.
    """
    if not options.results:
        return None
    name = options.machine or report["machine"].get("gpu") or report["machine"]["processor"]
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(\w+\)", "", name.lower())).strip("-")
    path = Path(options.results) / f"{kind}-{slug}-{report['date']}"
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [f"# bench_{kind}.py", _origin(report)]
    parts += [f"## {sheet.title}\n\n{_markdown(sheet)}" for sheet in sheets]
    parts.append("\n".join(f"- {note}" for note in notes))
    path.with_name(path.name + ".json").write_text(_as_json(report), encoding="utf-8")
    path.with_name(path.name + ".md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def _as_json(report: Result) -> str:
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def load(report: Result) -> list[str]:
    """Put the load of the machine into a report; the note on it, where the system knows it."""
    if not hasattr(os, "getloadavg"):
        return []
    report["load"] = round(os.getloadavg()[1], 1)
    cores = report["machine"]["cores"]
    return [f"load average of the last five minutes: {report['load']} on {cores} cores"]


def _origin(report: Result) -> str:
    """Where figures come from."""
    found = report["machine"]
    gpu = [found["gpu"]] if "gpu" in found else []
    parts = [*gpu, found["processor"], f"{found['cores']} cores", f"Python {found['python']}"]
    parts += [f"{name} {version}" for name, version in report["versions"].items()]
    return f"{', '.join(parts)}; {report['date']}"


def _markdown(sheet: Sheet) -> str:
    names = [name.removeprefix(">") for name in sheet.columns]
    rules = ["---:" if name.startswith(">") else "---" for name in sheet.columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in [names, rules, *sheet.rows])


def console(width: int | None = None) -> Console:
    """Where tables go; ``width`` is for what is no terminal."""
    width = None if sys.stdout.isatty() else width
    return Console(highlight=False, markup=False, emoji=False, width=width)


def show(out: Console, title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table; columns whose name begins with ``>`` are flush right."""
    result: Table = table(*columns, title=title)
    for row in rows:
        result.add_row(*row)
    out.print(result)
