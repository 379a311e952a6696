"""Random models, vocabularies and grammars for the tests of faithfulness."""

from __future__ import annotations

import numpy as np
from oracles.model import CharClass, Choice, Empty, Expr, Grammar, Literal, Ref, Repeat, Seq
from tokfold import Vocabulary
from tokfold.laboratory.fidelity import MarkovModel

EXPRESSIONS = """
root ::= root "+" term | term
term ::= factor ("*" factor)*
factor ::= [0-9]+ | "(" root ")" | [a-z]+
"""
LISTS = """
root ::= "[" (item ("," item)*)? "]"
item ::= "a" | root
"""
VOCABULARY = Vocabulary(
    [b"a", b"b", b"ab", b"ba", b"(", b")", b"bb)", b"<s>", b"</s>", b"", b"aa", b"</e>"],
    stop_token_ids=[8, 11],
    special_token_ids=[7],
)
"""Tokens of several bytes, a special token, one without bytes, two stop tokens."""


def random_model(seed: int, vocabulary: Vocabulary = VOCABULARY, states: int = 0) -> MarkovModel:
    """A model that ends soon and has zeros; ``states`` of 0: the last token is the state."""
    random = np.random.default_rng(seed)
    size = len(vocabulary)
    rows = size + 1 if states == 0 else states
    table = random.dirichlet(np.full(size, 0.5), size=rows)
    table[random.random(table.shape) < 0.2] = 0
    table[:, vocabulary.stop_token_ids[0]] += 0.7
    table /= table.sum(axis=1, keepdims=True)
    if states == 0:
        return MarkovModel.bigram(vocabulary, table)
    return MarkovModel(vocabulary, table, random.integers(0, states, table.shape), states - 1)


def unambiguous_grammar(seed: int) -> Grammar:
    """A random grammar of letters and brackets that often is unambiguous."""
    random = np.random.default_rng(seed)
    names = [f"r{i}" for i in range(int(random.integers(1, 4)))]

    def pick(*values):
        return values[int(random.integers(len(values)))]

    def letter() -> Expr:
        return pick(Literal(b"a"), Literal(b"b"), CharClass(((0x61, 0x62),)), Literal(b"ab"))

    def ref() -> Ref:
        return Ref(pick(*names))

    def body(name: str) -> Expr:
        shape = int(random.integers(9))
        match shape:
            case 0:
                return Choice((Seq((Literal(b"("), ref(), Literal(b")"))), letter()))
            case 1:
                return Choice((Seq((Literal(b"a"), Ref(name))), Empty()))
            case 2:
                return Choice((Seq((Ref(name), Literal(b"b"))), Literal(b"a")))
            case 3:
                return Choice((Seq((Literal(b"a"), Ref(name), Literal(b"b"))), Empty()))
            case 4:
                return Repeat(Seq((Literal(b"("), ref(), Literal(b")"))), 0, None)
            case 5:
                return Seq((Repeat(Literal(b"a"), 0, 2), Choice((Literal(b"b"), Literal(b")")))))
            case 6:
                return Choice((Seq((Literal(b"("), Ref(name), Ref(name))), Literal(b"a")))
            case 7:
                return Seq((ref(), letter()))
            case _:
                return Choice((Seq((ref(), Literal(b"("), Ref(name))), letter()))

    rules = {name: body(name) for name in names}
    rules = {"root": pick(Ref(names[0]), Seq((Ref(names[0]), Repeat(letter(), 0, 1)))), **rules}
    return Grammar(rules)
