"""The file of mutants: what is in it, read and written."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from laboratory.mutants.places import with_bodies
from tokfold.laboratory.form import Form

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "tests" / "data" / "mutants.jsonl.gz"
Label = Literal["different", "equal"]
NOT_RECORDED = {"air_travel", "english_tags"}
"""Grammars that are younger than the file. They are all ambiguity: judging them takes long."""


@dataclass(frozen=True)
class Case:
    """Two grammars of which it is known whether they are the same language.

    Attributes:
        grammar: the one of ``grammars/`` that both are made of.
        kind: of the change, or of the law.
        what: the change, or the laws, in words.
        rule: where.
        left: right-hand sides that the left one has and the grammar has not, as text.
        right: those of the right one.
        root: the right one's start rule.
        label: whether they differ.
        witness: where they do, a text that one of them takes.
        taken_by: which one.
        judges: who was asked; all agree.
        texts: where they do not differ, how many texts were tried.
    """

    grammar: str
    kind: str
    what: str
    rule: str
    left: dict[str, str]
    right: dict[str, str]
    root: str
    label: Label
    witness: bytes | None
    taken_by: Literal["left", "right"] | None
    judges: tuple[str, ...]
    texts: int | None

    def __str__(self) -> str:
        return f"{self.grammar} {self.kind}: {self.what}, in {self.rule}"

    @property
    def forms(self) -> tuple[Form, Form]:
        """Both sides."""
        return rebuilt(self.grammar, self.left), rebuilt(self.grammar, self.right, self.root)


@cache
def base(name: str) -> Form:
    """A grammar of ``grammars/``."""
    return Form.of(path_of(name).read_text(encoding="utf-8"))


def path_of(name: str) -> Path:
    return ROOT / "grammars" / name / f"{name}.gbnf"


def right_hand_sides(form: Form) -> dict[str, str]:
    """Each rule's text."""
    lines = [line.split(" ::= ", 1) for line in str(form).splitlines() if line]
    return {name: text for name, text in lines}


def rebuilt(name: str, bodies: dict[str, str], root: str | None = None) -> Form:
    """A side of a case."""
    own = base(name)
    text = "\n".join(
        f"{rule} ::= {body}" for rule, body in (right_hand_sides(own) | bodies).items()
    )
    whole = Form.of(text, root or own.root)
    return with_bodies(whole, {})


def digest(name: str) -> str:
    """Of a grammar's file: a mutant of another one is no mutant."""
    return hashlib.sha256(path_of(name).read_bytes()).hexdigest()[:16]


def names() -> list[str]:
    """Of the grammars in ``grammars/`` that mutants are made of."""
    found = {path.stem for path in (ROOT / "grammars").glob("*/*.gbnf")}
    return sorted(found - NOT_RECORDED)


def write(cases: Iterable[Case], header: dict[str, Any], path: Path = FILE) -> None:
    """The same cases are always the same bytes."""
    lines = [{**header, "grammars": {name: digest(name) for name in names()}}]
    for case in cases:
        fields = dict(vars(case))
        if case.witness is not None:
            fields["witness"] = case.witness.decode("utf-8", "surrogateescape")
        lines.append({name: value for name, value in fields.items() if value not in (None, {})})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read(path: Path = FILE) -> tuple[dict[str, Any], list[Case]]:
    """What the file says of itself, and the cases."""
    header, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    cases = []
    for line in lines:
        fields = json.loads(line)
        for name in ("left", "right"):
            fields.setdefault(name, {})
        for name in ("witness", "taken_by", "texts"):
            fields.setdefault(name, None)
        if fields["witness"] is not None:
            fields["witness"] = fields["witness"].encode("utf-8", "surrogateescape")
        fields["judges"] = tuple(fields["judges"])
        cases.append(Case(**fields))
    return json.loads(header), cases
