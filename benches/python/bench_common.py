"""What the Python benchmarks share: where grammars, texts and tokenizers are, and tables."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
GRAMMARS = ("json", "cpp", "bython")

if not os.environ.get("PYTHONPATH"):
    # Without an installed tokfold the checkout's own package serves.
    sys.path.append(str(ROOT / "python"))

from tokfold import Vocabulary  # noqa: E402
from tokfold.cli.inputs import read_tokenizer  # noqa: E402
from tokfold.cli.render import table  # noqa: E402


def parser(description: str) -> argparse.ArgumentParser:
    """The options of every benchmark."""
    result = argparse.ArgumentParser(description=description)
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
    result.add_argument("--json", action="store_true", help="print one JSON object, no tables")
    return result


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


def machine() -> dict[str, Any]:
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


def console() -> Console:
    """Where tables go."""
    return Console(highlight=False, markup=False, emoji=False)


def show(out: Console, title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table; columns whose name begins with ``>`` are flush right."""
    result: Table = table(*columns, title=title)
    for row in rows:
        result.add_row(*row)
    out.print(result)
