"""Who says what a grammar's language is: the slow oracle, and XGrammar. Neither is tokfold.

Only the reader of grammar text is shared with tokfold, by the oracle alone: XGrammar reads by
itself.
"""

from __future__ import annotations

import multiprocessing

from oracles import model
from oracles.earley import Oracle
from tokfold.laboratory.form import (
    Alt,
    Chars,
    Empty,
    Expr,
    Form,
    Literal,
    Ref,
    Repeat,
    Seq,
    children,
    postorder,
)


def as_model(form: Form) -> model.Grammar:
    """The oracles' value of a form without macros, lookahead or options."""
    done: dict[Expr, model.Expr] = {}
    for expr in postorder(rule.body for rule in form.rules.values()):
        parts = tuple(done[child] for child in children(expr))
        match expr:
            case Empty():
                done[expr] = model.Empty()
            case Literal():
                done[expr] = model.Literal(expr.data)
            case Chars():
                done[expr] = model.CharClass(expr.ranges)
            case Ref():
                done[expr] = model.Ref(expr.name)
            case Seq():
                done[expr] = model.Seq(parts)
            case Alt():
                done[expr] = model.Choice(parts)
            case Repeat():
                done[expr] = model.Repeat(parts[0], expr.least, expr.most)
            case _:
                raise NotImplementedError(f"the oracle has no {expr!r}")
    rules = {name: done[rule.body] for name, rule in form.rules.items()}
    return model.Grammar(rules, form.root)


class Judge:
    """The slow oracle of one form."""

    def __init__(self, form: Form) -> None:
        self._oracle = Oracle(as_model(form))
        self._known: dict[bytes, bool] = {}

    def accepts(self, text: bytes) -> bool:
        if text not in self._known:
            self._known[text] = self._oracle.accepts(text)
        return self._known[text]


def xgrammar_verdicts(text: str, root: str, samples: list[bytes]) -> list[bool] | str:
    """What XGrammar's parser says of texts under a grammar; or why it says nothing.

    In a process of its own: some grammars overflow XGrammar's stack.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_ask_xgrammar, args=(there, text, root, samples), daemon=True)
    child.start()
    there.close()
    try:
        verdicts = here.recv() if here.poll(60) else "no answer in a minute"
    except EOFError:
        verdicts = "it crashed"
    child.kill()
    child.join()
    return verdicts


def _ask_xgrammar(answer, text: str, root: str, samples: list[bytes]) -> None:
    import xgrammar

    info = xgrammar.TokenizerInfo(
        [bytes((byte,)) for byte in range(256)], xgrammar.VocabType.RAW, stop_token_ids=[]
    )
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    # A root that is called, or repeats, is not this root: XGrammar 0.2.8 errs about recursive ones.
    lines = [f"start_of_all ::= {root}", *text.splitlines()]
    parsed = xgrammar.Grammar.from_ebnf("\n".join(lines), root_rule_name="start_of_all")
    matcher = xgrammar.GrammarMatcher(compiler.compile_grammar(parsed))
    verdicts = []
    for sample in samples:
        matcher.reset()
        taken = all(matcher.accept_token(byte) for byte in sample)
        verdicts.append(taken and matcher.is_completed())
    answer.send(verdicts)
