"""Free text of at most so many characters, in which some texts do not occur, as a grammar.

Both together are beyond the macro ``TagDispatch`` and beyond a repetition: a forbidden text may
lie across any two characters. So the automaton that looks for the texts (Aho and Corasick, over
characters) is written out once for each number of characters left. A state of it is how much of a
forbidden text has just been read; as rule ``text_7_2`` it says what may follow with seven left.

The text is UTF-8 here, where ``TagDispatch`` takes any bytes.

Cost: characters times states, in rules; :data:`MAX_RULES` bounds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

__all__ = ["MAX_RULES", "bounded_text", "num_rules"]

MAX_RULES = 1 << 15
"""Most rules that are written: some 3,600 characters without ``</think>``."""


def num_rules(max_chars: int, excludes: Iterable[str]) -> int:
    """About how many rules :func:`bounded_text` writes: no fewer than it does."""
    return (max_chars + 1) * (1 + sum(map(len, excludes)))


def bounded_text(max_chars: int, excludes: Sequence[str], literal: Callable[[int], str]) -> str:
    """Grammar text.

    Args:
        max_chars: the most characters.
        excludes: the texts that do not occur; at least one, none empty.
        literal: writes a code point in a character class.
    """
    steps, forbidden = _automaton(excludes)
    letters = sorted({letter for text in excludes for letter in text})
    lines = [f"root ::= text_{max_chars}_0\n"]
    for state, row in enumerate(steps):
        if forbidden[state]:
            continue
        # by where they lead; what leads back to the start is all other characters too
        onward: dict[int, list[str]] = {}
        for letter in letters:
            onward.setdefault(row.get(letter, 0), []).append(literal(ord(letter)))
        onward.pop(0, None)
        others = "".join(x for found in onward.values() for x in found)
        choices = [(0, f"[^{others}]")]
        for target, found in sorted(onward.items()):
            if not forbidden[target]:
                choices.append((target, f"[{''.join(found)}]"))
        for left in range(1, max_chars + 1):
            body = " | ".join(f"{read} text_{left - 1}_{target}" for target, read in choices)
            lines.append(f'text_{left}_{state} ::= "" | {body}\n')
        lines.append(f'text_0_{state} ::= ""\n')
    return "".join(lines)


def _automaton(texts: Iterable[str]) -> tuple[list[dict[str, int]], list[bool]]:
    """Where each state goes by a letter (0 if not given), and whether a text has been read."""
    steps: list[dict[str, int]] = [{}]
    forbidden = [False]
    for text in texts:
        state = 0
        for letter in text:
            if letter not in steps[state]:
                steps[state][letter] = len(steps)
                steps.append({})
                forbidden.append(False)
            state = steps[state][letter]
        forbidden[state] = True
    shorter = [0] * len(steps)  # the longest other state that ends what was read
    todo = list(steps[0].values())
    for state in todo:  # grows; shorter states come first
        forbidden[state] |= forbidden[shorter[state]]
        for letter, target in steps[state].items():
            shorter[target] = steps[shorter[state]].get(letter, 0)
            todo.append(target)
        for letter, target in steps[shorter[state]].items():
            steps[state].setdefault(letter, target)
    return steps, forbidden
