"""Random grammars: small and nasty for property tests, large and ambiguous for benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

from hypothesis import strategies as st
from oracles.model import (
    CharClass,
    Choice,
    Empty,
    Expr,
    Grammar,
    Literal,
    Ref,
    Repeat,
    Seq,
    walk,
)

TEXTS = ["a", "b", "c", "(", ")", "-", "[", "]", "+", ",", " ", '"', "ab", "abc", "aa", "--"]
UNICODE_TEXTS = ["é", "日", "😀", "本日", "\n", "\0", "\\", "^", "\ud7ff", "\U0010ffff"]

CLASSES = [
    CharClass(((0x61, 0x63),)),
    CharClass(((0x30, 0x39),)),
    CharClass(((0x61, 0x61), (0x2D, 0x2D))),
    CharClass(((0x61, 0x7A), (0x5F, 0x5F))),
    CharClass(((0x61, 0x61),), negated=True),
]
UNICODE_CLASSES = [
    CharClass(((0x22, 0x22), (0x5C, 0x5C)), negated=True),
    CharClass(((0x5B, 0x5E), (0x2D, 0x2D))),
    CharClass(((0x80, 0xFF),)),
    CharClass(((0x61, 0x61), (0xE0, 0xEA))),
    CharClass(((0x4E00, 0x9FFF),)),
    CharClass(((0x1F600, 0x1F64F), (0x61, 0x62))),
    CharClass(((0x00, 0x7F),), negated=True),
    CharClass(((0x7F0, 0x810),)),  # two and three bytes
    CharClass(((0xFFF0, 0x1000F),)),  # three and four bytes
    CharClass(((0xD7FF, 0xE000),)),  # across the surrogates
    CharClass((), negated=True),
]
EMPTY_CLASSES = [CharClass(()), CharClass(((0, 0x10FFFF),), negated=True)]

BOUNDS = [(0, 1), (0, None), (1, None), (1, 2), (0, 2), (2, 2), (1, 3), (2, None), (0, 0), (1, 1)]


class _Builder:
    """One random grammar."""

    def __init__(self, random: Random, rules: int, unicode: float, unproductive: float) -> None:
        self.random = random
        self.names = ["root", *(f"r{number}" for number in range(1, rules))]
        self.unproductive = unproductive
        self.unicode = random.random() < unicode
        texts = TEXTS + (UNICODE_TEXTS if self.unicode else [])
        self.texts = random.sample(texts, random.randint(2, 5))
        classes = CLASSES + (UNICODE_CLASSES if self.unicode else [])
        self.classes = random.sample(classes, random.randint(1, 2))

    def chance(self, probability: float) -> bool:
        return self.random.random() >= 1 - probability  # zero, the simplest, means no

    def literal(self) -> Expr:
        return Literal(self.random.choice(self.texts).encode("utf-8", "surrogatepass"))

    def ref(self) -> Ref:
        return Ref(self.random.choice(self.names))

    def terminal(self) -> Expr:
        if self.chance(0.25):
            if self.chance(self.unproductive * 0.3):
                return self.random.choice(EMPTY_CLASSES)
            return self.random.choice(self.classes)
        return self.literal()

    def atom(self, depth: int = 0) -> Expr:
        roll = self.random.random()
        if roll < 0.4 or depth > 2:
            return self.terminal()
        if roll < 0.75:
            return self.ref()
        if roll < 0.88:
            low, high = self.random.choice(BOUNDS)
            return Repeat(self.atom(depth + 1), low, high)
        if roll < 0.93:
            return Empty()
        return Choice((self.sequence(depth + 1), self.sequence(depth + 1)))

    def sequence(self, depth: int = 0) -> Expr:
        length = self.random.choice([1, 2, 3, 2, 1])
        items = tuple(self.atom(depth) for _ in range(length))
        return items[0] if length == 1 else Seq(items)

    def free(self, name: str) -> Expr:
        """Anything; at least one alternative is likely to end."""
        alternatives = [self.sequence() for _ in range(self.random.choice([1, 2, 3]))]
        if self.chance(0.7):
            alternatives.append(self.terminal())
        return Choice(tuple(alternatives)) if len(alternatives) > 1 else alternatives[0]

    def nested(self, name: str) -> Expr:
        return Choice((self.terminal(), Seq((self.literal(), self.ref(), self.literal()))))

    def left(self, name: str) -> Expr:
        return Choice((self.terminal(), Seq((Ref(name), self.atom()))))

    def right(self, name: str) -> Expr:
        return Choice((self.atom(), Seq((self.terminal(), Ref(name)))))

    def hidden_left(self, name: str) -> Expr:
        """Left recursion behind something that may be empty."""
        hidden = Repeat(self.atom(1), 0, self.random.choice([1, None]))
        return Choice((self.terminal(), Seq((hidden, Ref(name), self.atom()))))

    def ambiguous(self, name: str) -> Expr:
        joint = (
            (Ref(name), Ref(name)) if self.chance(0.4) else (Ref(name), self.literal(), Ref(name))
        )
        ends = (Empty(),) if self.chance(0.3) else ()
        return Choice((self.terminal(), Seq(joint), *ends))

    def cyclic(self, name: str) -> Expr:
        return Choice((self.terminal(), self.ref(), Ref(name)))

    def nullable(self, name: str) -> Expr:
        return Choice((Empty(), self.atom(), Seq((self.ref(), self.ref()))))

    def endless(self, name: str) -> Expr:
        """Nothing ever completes this."""
        return Seq((self.terminal(), Ref(name)))

    def shared(self, name: str) -> Expr:
        """One piece in two surroundings."""
        piece = self.sequence()
        return Choice((Seq((self.literal(), piece)), Seq((piece, self.literal())), piece))

    def rule(self, name: str) -> Expr:
        if self.chance(self.unproductive * 0.5):
            return self.endless(name)
        shape = self.random.choice(
            [
                self.free,
                self.nested,
                self.right,
                self.left,
                self.shared,
                self.nullable,
                self.free,
                self.hidden_left,
                self.ambiguous,
                self.cyclic,
            ]
        )
        return shape(name)

    def build(self) -> Grammar:
        rules = {name: self.rule(name) for name in self.names}
        for before, name in pairwise(self.names):
            if is_bare_repetition(rules[name]):
                rules[name] = Choice((self.terminal(), rules[name]))
            if name not in reachable_rules(rules, "root") and self.chance(0.95):
                link: Expr = Ref(name)
                if self.chance(0.6):
                    link = Seq(
                        (self.literal(), link) if self.chance(0.5) else (link, self.literal())
                    )
                rules[before] = Choice((rules[before], link))
        if is_bare_repetition(rules["root"]):
            rules["root"] = Choice((self.terminal(), rules["root"]))
        return Grammar(rules)


def is_bare_repetition(body: Expr) -> bool:
    """Whether a rule is nothing but a repetition.

    Compiling `r ::= r{0,2}`, or the same by way of another rule, overflows XGrammar's stack.
    """
    if isinstance(body, Seq):
        rest = [item for item in body.items if not isinstance(item, Empty)]
        return len(rest) == 1 and is_bare_repetition(rest[0])
    return isinstance(body, Repeat)


def reachable_rules(rules: Mapping[str, Expr], root: str) -> set[str]:
    """The rules that the root refers to, directly or not."""
    found, frontier = {root}, [root]
    while frontier:
        refs = {e.name for e in walk(rules[frontier.pop()]) if isinstance(e, Ref)}
        frontier += sorted(refs - found)
        found |= refs
    return found


def build_grammar(
    random: Random,
    *,
    rules: int,
    unicode: float = 0.4,
    unproductive: float = 0.2,
    texts: Sequence[str] | None = None,
) -> Grammar:
    """A grammar of ``rules`` rules.

    ``unicode`` is the chance that it has more than ASCII, ``unproductive`` sets how much of it
    nothing completes (0: only what chance brings about). ``texts`` are its literals, and what they
    are made of is all that it has.
    """
    builder = _Builder(random, rules, unicode, unproductive)
    if texts is not None:
        builder.texts = list(texts)
        letters = sorted(set("".join(texts)))
        builder.classes = [CharClass(tuple((ord(letter), ord(letter)) for letter in letters))]
    return builder.build()


def random_grammar(seed: int, rules: int = 40) -> Grammar:
    """A random ambiguous grammar of exactly ``rules`` rules, every one of them in use.

    The benchmark's: "200 random ambiguous grammars of up to 40 rules, each". Rule ``i`` refers to a
    later one, so all are reachable; every rule has an alternative that ends; about a quarter of
    them are ambiguous outright.
    """
    random = Random(seed)
    builder = _Builder(random, rules, unicode=0.3, unproductive=0.0)
    out: dict[str, Expr] = {}
    for number, name in enumerate(builder.names):
        body = builder.ambiguous(name) if random.random() < 0.25 else builder.rule(name)
        later = builder.names[number + 1 : number + 4]
        extra: list[Expr] = [builder.terminal()]
        if later:
            extra.append(Seq((builder.literal(), Ref(random.choice(later)))))
            extra.append(Ref(later[0]))
        out[name] = Choice((body, *extra))
    return Grammar(out)


@st.composite
def grammars(draw, max_rules: int = 4, unicode: float = 0.4, unproductive: float = 0.2) -> Grammar:
    """Hypothesis strategy over :func:`build_grammar`."""
    rules = draw(st.integers(1, max_rules))
    random = draw(st.randoms(use_true_random=False, note_method_calls=False))
    return build_grammar(random, rules=rules, unicode=unicode, unproductive=unproductive)
