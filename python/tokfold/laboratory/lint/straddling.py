r"""Tokens that go on across a delimiter: ``",`` or ``}\n``.

Found by the engine itself. In a second grammar a mark, a character that no text holds, may stand on
both sides of each delimiter; a token straddles where its bytes with a mark inside are accepted. So
a token counts exactly if at some state that was explored it is allowed and one of its bytes ends or
begins a delimiter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tokfold.bitmask import allocate_bitmask
from tokfold.engine import compile as compile_grammar
from tokfold.errors import LimitExceededError, MissingExtraError, UnsupportedGrammarError
from tokfold.grammar import Grammar
from tokfold.laboratory.form import Chars, Expr, Form, Literal, Repeat, Seq, postorder
from tokfold.laboratory.lint.exploring import explore
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Finding
from tokfold.laboratory.lint.rewriting import substituted
from tokfold.laboratory.lint.texts import quoted_text
from tokfold.matcher import Matcher
from tokfold.options import CompileOptions
from tokfold.vocabulary import Vocabulary

__all__ = ["straddling"]

SHOWN = 8
_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def straddling(
    facts: Facts, vocabulary: Vocabulary, max_states: int, max_tries: int, notes: list[str]
) -> Iterator[Finding]:
    """One finding with counts and examples for each delimiter, if there are such tokens."""
    delimiters = _delimiters(facts)
    if not delimiters:
        return
    try:
        marked, mark = _marked(facts, delimiters)
        compiled = compile_grammar(
            marked,
            vocabulary,
            marked._limits,
            classes="now",
            options=CompileOptions(check_tokens=False),
        )
        explored = explore(compiled, max_states, max_states * 20)
    except (UnsupportedGrammarError, LimitExceededError, MissingExtraError) as error:
        notes.append(f"straddling tokens: not looked for: {error}")
        return
    sizes = np.fromiter(map(len, vocabulary), np.int64, len(vocabulary))
    apart = np.zeros(len(vocabulary), dtype=bool)
    apart[[*vocabulary.stop_token_ids, *vocabulary.special_token_ids]] = True
    holds = _holding(vocabulary, {d.data for d in delimiters})
    open_ = (sizes > 1) & ~apart & holds
    row = allocate_bitmask(1, len(vocabulary))
    found: dict[int, tuple[int, bytes]] = {}
    tries = 0
    for state in explored.states:
        if tries >= max_tries:
            notes.append(f"straddling tokens: {max_tries:,} texts tried, there may be more")
            break
        matcher = Matcher(compiled)
        matcher.accept_bytes(state.text)
        matcher.fill_bitmask(row)
        bits = np.unpackbits(row[0].view(np.uint8), bitorder="little")[: len(vocabulary)]
        for token_id in np.flatnonzero(bits.astype(bool) & open_):
            token = vocabulary[int(token_id)]
            tries += len(token) - 1
            if tries >= max_tries:
                break
            at = _cut(matcher, token, mark)
            if at is not None:
                found[int(token_id)] = at, state.text
                open_[token_id] = False
    if found:
        yield _finding(vocabulary, found)


def _cut(matcher: Matcher, token: bytes, mark: bytes) -> int | None:
    """Where in a token a delimiter begins or ends."""
    for at in range(1, len(token)):
        if matcher.accept_bytes(token[:at] + mark + token[at:]):
            matcher.rollback(1)
            return at
    return None


def _finding(vocabulary: Vocabulary, found: dict[int, tuple[int, bytes]]) -> Finding:
    def shown(token_id: int) -> str:
        at = found[token_id][0]
        token = vocabulary[token_id]
        return f"{quoted_text(token[:at])}|{quoted_text(token[at:])}"

    # Short ones and low numbers are what a model uses most.
    order = sorted(found, key=lambda i: (len(vocabulary[i]), i))
    examples = ", ".join(shown(token_id) for token_id in order[:SHOWN])
    return Finding(
        "straddling-tokens",
        f"{len(found):,} tokens go on across a delimiter: {examples}",
        None,
        "",
        "nothing in the grammar; cut text where the tokenizer does, or heal the last token before "
        "going on from a delimiter",
        details={
            "tokens": len(found),
            "examples": [
                {
                    "token": token_id,
                    "text": vocabulary[token_id].decode("utf-8", "backslashreplace"),
                    "cut": found[token_id][0],
                    "after": found[token_id][1].decode("utf-8", "backslashreplace"),
                }
                for token_id in order[:50]
            ],
        },
    )


def _delimiters(facts: Facts) -> list[Literal]:
    """Literals of a useful rule without letters and digits that are not only white space."""
    exprs = {e: None for name in facts.bodies if name in facts.useful for e in facts.exprs_of[name]}
    return [
        e
        for e in exprs
        if isinstance(e, Literal) and not _WORD.intersection(e.data) and e.data.strip()
    ]


def _holding(vocabulary: Vocabulary, delimiters: set[bytes]) -> np.typing.NDArray[np.bool_]:
    """Tokens with the first or the last byte of a delimiter in them, which straddling ones have."""
    ends = {d[:1] for d in delimiters} | {d[-1:] for d in delimiters}
    holds = (any(end in token for end in ends) for token in vocabulary)
    return np.fromiter(holds, dtype=bool, count=len(vocabulary))


def _marked(facts: Facts, delimiters: list[Literal]) -> tuple[Grammar, bytes]:
    """The grammar with a mark that may stand around delimiters, and the mark.

    The mark is taken out of all classes, so it is read nowhere else.
    """
    form = facts.form
    exprs = postorder(rule.body for rule in form.rules.values())
    literals = [e.data.decode("utf-8", "surrogatepass") for e in exprs if isinstance(e, Literal)]
    mark = next(
        code
        for code in range(1, 0x110000)
        if chr(code) not in "\t\n\r" and not any(chr(code) in text for text in literals)
    )
    optional = Repeat(Literal(chr(mark).encode()), 0, 1)
    changes: dict[Expr, Expr] = {d: Seq([optional, d, optional]) for d in delimiters}
    for expr in exprs:
        if isinstance(expr, Chars):
            changes[expr] = _without(expr, mark)
    rules = [replace(rule, body=substituted(rule.body, changes)) for rule in form.rules.values()]
    return Form.grammar(form.with_rules(rules)), chr(mark).encode()


def _without(chars: Chars, mark: int) -> Chars:
    ranges: list[tuple[int, int]] = []
    for first, last in chars.ranges:
        if first <= mark <= last:
            ranges.extend(r for r in ((first, mark - 1), (mark + 1, last)) if r[0] <= r[1])
        else:
            ranges.append((first, last))
    return Chars(ranges)
