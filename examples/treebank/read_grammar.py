"""A grammar of part-of-speech tags, its productions read off your own copy of a treebank.

    python examples/treebank/read_grammar.py treebank/combined --trees 300 > tags.gbnf
    python examples/treebank/read_grammar.py treebank/combined --trees 300 --sentences > tags.txt

Reads files of bracketed trees, such as ``( (S (NP-SBJ (DT The) (NN cat)) (VP (VBD sat)) (. .)) )``.
A text of the grammar is the tags of a sentence, each followed by a blank: ``DT NN VBD DOT ``.
Treebanks have licences that do not let their content be passed on: what comes out is for you.

What is read: labels without functions and indices (``NP-SBJ=2`` is ``NP``); empty elements
(``-NONE-``) are left out, and what they leave empty; the words are forgotten. With ``--at-least`` a
production must occur so often, and rules that lose all of theirs take the productions with them.

Charts on a device read such grammars by their tags::

    grammar = tokfold.Grammar.from_file("tags.gbnf")
    binary = tokfold.chart_gpu.BinaryGrammar.of(grammar, alphabet="terminals")
    lexer = tokfold.chart_gpu.TerminalLexer(binary)
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

NAMES = {
    **{".": "DOT", ",": "COMMA", ":": "COLON", "``": "LQ", "''": "RQ", "#": "HASH", "$": "DOLLAR"},
    **{"-LRB-": "LRB", "-RRB-": "RRB"},
}
"""Tags that are no letters."""


@dataclass
class Tree:
    """A label above parts, or, with a word, a tag."""

    label: str
    parts: list[Tree] = field(default_factory=list)
    word: str | None = None


class TreebankError(ValueError):
    """A text is no sequence of bracketed trees; says where."""


def read_trees(text: str, name: str = "text") -> Iterator[Tree]:
    """The trees of a text, one after the other.

    Raises:
        TreebankError: brackets do not match, or a word stands where none can.
    """
    open_trees: list[Tree] = []
    opened = [0]
    is_begun = False
    for match in re.finditer(r"[()]|[^\s()]+", text):
        part, line = match[0], text.count("\n", 0, match.start()) + 1
        if part == "(":
            open_trees.append(Tree(""))
            opened.append(line)
            is_begun = True
        elif not open_trees:
            raise TreebankError(f"{name}: line {line}: {part!r} stands outside all trees")
        elif part == ")":
            done = open_trees.pop()
            opened.pop()
            is_begun = False
            if open_trees:
                open_trees[-1].parts.append(done)
            else:
                yield done
        elif is_begun:
            open_trees[-1].label = part
            is_begun = False
        elif open_trees[-1].word is None and not open_trees[-1].parts:
            open_trees[-1].word = part
        else:
            raise TreebankError(f"{name}: line {line}: the word {part!r} has no tag of its own")
    if open_trees:
        raise TreebankError(f"{name}: line {opened[-1]}: a bracket is opened and never closed")


def bare(label: str) -> str:
    """A label without functions and indices; tags such as ``-LRB-`` are whole."""
    return label if label.startswith("-") else re.split(r"[-=]", label)[0]


def pruned(tree: Tree) -> Tree | None:
    """A tree without empty elements and brackets around the whole; None if nothing is left.

    Trees are as deep as sentences are, so it goes on a list of its own.
    """
    finished: dict[int, Tree | None] = {}
    work = [(tree, False)]
    while work:
        top, is_done = work.pop()
        if not is_done:
            work.append((top, True))
            work.extend((part, False) for part in top.parts)
            continue
        parts = [found for part in top.parts if (found := finished[id(part)]) is not None]
        label = bare(top.label)
        if top.word is not None:
            finished[id(top)] = None if label == "-NONE-" else Tree(label, [], top.word)
        elif not label and len(parts) == 1:
            finished[id(top)] = parts[0]
        else:
            finished[id(top)] = Tree(label or "TOP", parts) if parts else None
    return finished[id(tree)]


def below(tree: Tree) -> Iterator[Tree]:
    """A tree and all of its parts, in the order of the text."""
    work = [tree]
    while work:
        top = work.pop()
        yield top
        work.extend(reversed(top.parts))


def tag_of(tree: Tree) -> str:
    """A tag in capitals alone: ``PRP$`` is ``PRPS``."""
    name = NAMES.get(tree.label, tree.label.replace("$", "S"))
    name = re.sub(r"[^A-Z0-9]", "", name.upper())
    return name or "SYM"


def sentence(tree: Tree) -> str:
    """The tags of a tree, each followed by a blank: a text of the grammar."""
    return "".join(f"{tag_of(part)} " for part in below(tree) if part.word is not None)


def rule_of(label: str) -> str:
    """The name of a label's rule."""
    name = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_") or "none"
    return f"{name}_" if name == "root" or name[0].isdigit() else name


def productions(trees: Iterable[Tree]) -> Counter[tuple[str, tuple[str, ...]]]:
    """How often each production occurs: a rule's name, and names of rules and quoted tags."""
    found: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for tree in trees:
        top = f'"{tag_of(tree)} "' if tree.word is not None else rule_of(tree.label)
        found["root", (top,)] += 1
        for part in below(tree):
            if part.word is None:
                body = (
                    rule_of(p.label) if p.word is None else f'"{tag_of(p)} "' for p in part.parts
                )
                found[rule_of(part.label), tuple(body)] += 1
    return found


def grammar_text(
    found: Counter[tuple[str, tuple[str, ...]]], at_least: int = 1, width: int = 96
) -> str:
    """Productions as grammar text, the most frequent first.

    Raises:
        TreebankError: none is left.
    """
    bodies: dict[str, list[tuple[str, ...]]] = {}
    for (name, body), count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        # Nothing is its own only part: such a production says nothing.
        if count >= at_least and body != (name,):
            bodies.setdefault(name, []).append(body)
    while True:  # a body that names a rule without bodies goes, and perhaps its rule
        kept = {
            name: [b for b in every if all(p[0] == '"' or p in bodies for p in b)]
            for name, every in bodies.items()
        }
        kept = {name: every for name, every in kept.items() if every}
        if kept == bodies:
            break
        bodies = kept
    if "root" not in bodies:
        raise TreebankError(f"no tree is left whose productions occur {at_least} times")
    lines = []
    for name in ["root", *sorted(set(bodies) - {"root"})]:
        line = f"{name} ::="
        for number, body in enumerate(bodies[name]):
            more = f"{' |' if number else ''} {' '.join(body)}"
            if len(line) + len(more) > width and number:
                lines.append(line)
                line = " "
            line += more
        lines.append(line)
    return "\n".join(lines) + "\n"


def read_files(path: Path) -> Iterator[Tree]:
    """The trees of a file, or of all files of a folder in the order of their names."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    for file in files:
        for tree in read_trees(file.read_text(encoding="utf-8"), str(file)):
            left = pruned(tree)
            if left is not None:
                yield left


def main() -> None:
    parser = argparse.ArgumentParser(
        description="A grammar of part-of-speech tags, read off your own copy of a treebank."
    )
    parser.add_argument("path", type=Path, help="a file of bracketed trees, or a folder of them")
    parser.add_argument("--trees", type=int, help="read so many and no more")
    parser.add_argument("--at-least", type=int, default=1, help="how often a production occurs")
    parser.add_argument("--sentences", action="store_true", help="print texts, not the grammar")
    options = parser.parse_args()
    try:
        trees = list(islice(read_files(options.path), options.trees))
        if options.sentences:
            print(*map(sentence, trees), sep="\n")
        else:
            print(grammar_text(productions(trees), options.at_least), end="")
    except (OSError, UnicodeDecodeError, TreebankError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
