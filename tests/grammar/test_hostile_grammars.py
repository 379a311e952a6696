"""Grammars and texts that are deep, long or ambiguous, raised limits, interrupts, empty languages.

A named error that says what to do, or the answer, soon, and never a crash.
"""

from __future__ import annotations

import itertools
import re
from random import Random

import pytest
import tokfold
from strategies.profiles import LONG
from support.hostile_runner import NAMED, NEEDS_LIMITS, STACKS, check, run
from tokfold import (
    Grammar,
    LimitExceededError,
    Limits,
    UnsupportedGrammarError,
    Vocabulary,
    compile_classes,
    recognize,
)

pytestmark = NEEDS_LIMITS

# Single grammars

# Where the text is a grammar that a limit may refuse.
MAY_REACH_A_LIMIT = {
    "[^x]{0,1000000}",
    "{4000000000,}",
    "{0,4000000000}",
    "repeated repetition",
    "repeated repetition of one or more",
    "ambiguous repetition",
    "subset construction, 300",
    "optional words",
    "100 classes of 5,000 characters",
    "10 MB, one literal",
    "10 MB, classes",
    "10 MB, optional letters",
}
# Name: text, sample, and what recognition must say (None: the text is refused).
GRAMMARS = {
    "1,000 levels": ("'root ::= ' + '(' * 1000 + '\"a\"' + ')' * 1000", "'a'", [True, 1]),
    "10,000 levels": ("'root ::= ' + '(' * 10_000 + '\"a\"' + ')' * 10_000", "'a'", None),
    "10,000 open": ("'root ::= ' + '(' * 10_000", "'a'", None),
    "10,000 stars": ("'root ::= \"a\"' + '*' * 10_000", "'a'", None),
    "{0,1000000}": ("'root ::= \"a\"{0,1000000}'", "'a' * 1000", [True, 1_000]),
    "[^x]{0,1000000}": ("'root ::= [^x]{0,1000000}'", "'a' * 1000", [True, 1_000]),
    "{1000000}": ("'root ::= \"a\"{1000000}'", "'a' * 1000", [False, 1_000]),
    "{4000000000,}": ("'root ::= \"a\"{4000000000,}'", "'a' * 1000", [False, 1_000]),
    "{0,4000000000}": ('\'root ::= "a"{0,4000000000} "b"\'', "'ab'", [True, 2]),
    "repeated repetition": (
        "'root ::= ((\"a\"{0,1000}){0,1000}){0,1000}'",
        "'a' * 1000",
        [True, 1_000],
    ),
    "repeated repetition of one or more": (
        "'root ::= ((\"ab\"{1,1000}){1,1000}){1,1000}'",
        "'ab' * 1000",
        [True, 2_000],
    ),
    "ambiguous repetition": (
        "'root ::= ((([ab] \"a\"){1,100}){1,100}){1,100}'",
        "'ba' * 100",
        [True, 200],
    ),
    "repeated rule": (
        '\'root ::= r{0,1000000}\\nr ::= "(" r ")" | "ab"\'',
        "'ab'",
        [True, 2],
    ),
    "subset construction": ("'root ::= [ab]* \"a\" [ab]{25}'", "'ab' * 1000", [True, 2_000]),
    "subset construction, 300": ("'root ::= [ab]* \"a\" [ab]{300}'", "'ab' * 1000", [False, 2_000]),
    "optional words": (
        "'root ::= ' + ' '.join(f'\"k{i}\"?' for i in range(20_000))",
        "'k1k2'",
        [True, 4],
    ),
    "2,000 optional words": (
        "'root ::= ' + ' '.join(f'\"k{i}\"?' for i in range(2_000))",
        "'k1k2'",
        [True, 4],
    ),
    "ambiguous": (
        '\'root ::= root root | root root root | "a" | ""\'',
        "'a' * 1000",
        [True, 1_000],
    ),
    "ambiguous brackets": (
        '\'root ::= root root | root root root | "a" | "(" root ")" | "(" root "]" | ""\'',
        "'(((a)a])' * 100",
        [True, 800],
    ),
    "a class of 60,000 characters": (
        "'root ::= [' + ''.join(chr(c) for c in range(0x400, 0x20000, 2) if c >> 11 != 27) + ']*'",
        "'\\u0402' * 100",
        [True, 200],
    ),
    "all but 60,000 characters": (
        "'root ::= [^' + ''.join(chr(c) for c in range(0x400, 0x20000, 2) if c >> 11 != 27) + ']*'",
        "'\\u0403' * 100",
        [True, 200],
    ),
    "100 classes of 5,000 characters": (
        "'root ::= ' + ' '.join('[^' + ''.join(chr(c) for c in range(0x400 + k, 0x4000, 3)) + ']?'"
        " for k in range(100))",
        "'abc'",
        [True, 3],
    ),
    "100,000 words": (
        "'root ::= ' + ' | '.join(f'\"key number {i * 7919}\"' for i in range(100_000))",
        "'key number 7919'",
        [True, 15],
    ),
    "100,000 random words": (
        "'root ::= ' + ' | '.join(f'\"{(i + 1) * 7919 ** 5 % 10 ** 14:014}\"'"
        " for i in range(100_000))",
        "'x'",
        [False, 0],
    ),
    "10 MB, one literal": ("'root ::= \"' + 'a' * 10_000_000 + '\"'", "'aaa'", [False, 3]),
    "10 MB, classes": ("'root ::= ' + '[ab]' * 2_500_000", "'aaa'", [False, 3]),
    "10 MB, alternatives": ("'root ::= ' + '|'.join(['\"ab\"'] * 2_000_000)", "'ab'", [True, 2]),
    "10 MB, optional letters": ("'root ::= ' + '\"a\"?' * 2_500_000", "'a'", [True, 1]),
    "10 MB, comments": ("'root ::= \"a\"' + '\\n# ' * 3_300_000", "'a'", [True, 1]),
    "10 MB, no end of a literal": ("'root ::= \"' + 'a' * 10_000_000", "'a'", None),
    "10 MB of zeros": ("'\\0' * 10_000_000", "'a'", None),
    "10 MB, one name": ("'root ::= ' + 'a' * 10_000_000", "'a'", None),
}


SMALL = ["1,000 levels", "10,000 levels", "10,000 stars", "subset construction", "ambiguous"]
SMALL += ["ambiguous brackets", "2,000 optional words", "10 MB, alternatives"]
SLOW = {"optional words", "10 MB, optional letters", "100,000 random words"}
ON_STACKS = [(name, stack) for name in GRAMMARS for stack in (STACKS if name in SMALL else [0])]


@pytest.mark.parametrize(("name", "stack"), ON_STACKS)
def test_grammars(name, stack):
    if name in SLOW and not LONG:
        pytest.skip("TOKFOLD_HYPOTHESIS=long tries all of them")
    text, sample, expected = GRAMMARS[name]
    steps = check(run(f"both({text}, {sample})", stack))
    found = steps.get("recognized")
    if expected is None:
        assert found is None
        assert steps["read"].outcome in ("LimitExceededError", "GrammarSyntaxError")
    elif name not in MAY_REACH_A_LIMIT or found.outcome != "LimitExceededError":
        assert (found.outcome, found.value) == ("ok", expected)


# Deep texts, repetitions, raised limits


@pytest.mark.parametrize("levels", [900, 5_000, 1_000_000])
@pytest.mark.parametrize("stack", STACKS)
def test_deep_texts(levels, stack):
    """Recognition keeps as many levels as it can and says so when there are more."""
    body = f"""
        n = {levels}
        plain = Grammar.from_ebnf('root ::= "(" root ")" | "a"')
        step("plain", lambda: recognize(plain, "(" * n + "a" + ")" * n))
        ambiguous = Grammar.from_ebnf('root ::= "(" root ")" | "(" root "]" | root root | "a"')
        step("ambiguous", lambda: recognize(ambiguous, "(" * n + "a" + ")" * n))
        tail = Grammar.from_ebnf('root ::= "(" root | "a"')
        step("tail", lambda: recognize(tail, "(" * n + "a"))
        """
    steps = check(run(body, stack))
    assert steps["tail"].value == [True, levels + 1]
    if levels == 900:
        assert steps["plain"].value == [True, 2 * levels + 1]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?:ab?){2,4}", '("a" "b"?){2,4}'),
        ("(?:a?){3}b", '("a"?){3} "b"'),
        ("(?:a?){0,9}b?", '("a"?){0,9} "b"?'),
        ("(?:a|b{2,3}){0,50}", '("a" | "b"{2,3}){0,50}'),
        ("(?:(?:a{0,2}){2,3}b){1,50}", '(("a"{0,2}){2,3} "b"){1,50}'),
        ("a{4,}b", '"a"{4,} "b"'),
        ("(?:a{5}|b){2}", '("a"{5} | "b"){2}'),
    ],
)
def test_recognition_writes_out_no_more_copies_than_the_text_has_bytes(pattern, text):
    grammar = Grammar.from_ebnf(f"root ::= {text}")
    for length in range(7):
        for letters in itertools.product("ab", repeat=length):
            word = "".join(letters)
            found = recognize(grammar, word)
            assert found.accepted == bool(re.fullmatch(pattern, word)), word
            if found.read == length:
                more = [b for b in "abc" if recognize(grammar, word + b).read > length]
                assert found.expected.decode() == "".join(more), word


@pytest.mark.parametrize("stack", STACKS)
def test_limits_may_be_raised(stack):
    """What a limit refuses can be had: nothing else is in the way, not even a small stack."""
    body = """
        levels, deep = 20_000, Limits(max_stack_depth=10**6)
        text = "(" * levels + "a" + ")" * levels
        for rules in (
            'root ::= "(" root ")" | "a"',
            'root ::= "(" root ")" | "(" root "]" | root root | "a"',
        ):
            grammar = Grammar.from_ebnf(rules)
            step("refused", lambda: recognize(grammar, text))
            step(rules, lambda: recognize(grammar, text, deep))
        step("nested", lambda: Grammar.from_ebnf(
            "root ::= " + "(" * 10_000 + '"a"' + ")" * 10_000, limits=Limits(max_nesting=10_000)))
        wide = Grammar.from_ebnf("root ::= " + " ".join(f'"k{i}"?' for i in range(2_000)))
        step("less", lambda: compile_classes(wide, WORDS, Limits(max_network_work=1_000_000)))
        step("more", lambda: compile_classes(wide, WORDS))
        """
    steps = check(run(body, stack))
    refused = {name: s.limit for name, s in steps.items() if s.outcome == "LimitExceededError"}
    assert refused == {"refused": "max_stack_depth", "less": "max_network_work"}
    assert [s.value for s in steps.values() if "root" in s.name] == [[True, 40_001]] * 2


# Ctrl-C


def pairs_of_rules(seed):
    """Eighty times one of 64 rules and another."""
    draw = Random(seed).randrange
    return " | ".join(f"r{draw(64)} r{draw(64)}" for _ in range(80))


INTERRUPTED = {
    # More than sixteen copies would be counted.
    "repetitions written out": 'root ::= ((((([ab] "a"){1,16}){1,16}){1,16}){1,16}){1,16}',
    "optional parts": "root ::= " + '"a"? ' * 12_000,
    "subsets": "root ::= (((([ab] [ab]?){1,16}){1,16} [ab]){1,16}){1,16}",
    "a left-recursive cycle": "root ::= r0\n"
    + "\n".join(f'r{i} ::= "{"ab"[i % 2]}" | {pairs_of_rules(i)}' for i in range(64)),
    "many rules": "root ::= r0\n"
    + "\n".join(f'r{i} ::= "x" r{i + 1}' for i in range(200_000))
    + '\nr200000 ::= "y"',
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupt_while_a_network_is_made(name):
    """Heard whatever is being done: without it the work goes on to the deadline of the tests."""
    body = f"""
        import signal
        ANY = Limits(
            max_network_work=10**15, max_network_states=10**9, max_network_edges=10**9,
            max_grammar_bytes=10**9,
        )
        grammar = Grammar.from_ebnf({INTERRUPTED[name]!r}, limits=ANY)
        def interrupt(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGPROF, interrupt)
        signal.setitimer(signal.ITIMER_PROF, 0.1)
        step("work", lambda: recognize(grammar, "a" * 10_000, ANY))
        """
    found = run(body)["work"]
    assert found.outcome == "KeyboardInterrupt"


# Rules that say nothing


@pytest.mark.parametrize(
    "text",
    [
        "root ::= root",
        "root ::= a\na ::= b\nb ::= a",
        'root ::= "a" root',
        'root ::= root "a"',
        'root ::= root "a" | root root',
        "root ::= []",
        'root ::= [] | "a" []',
        'root ::= []{1,5} | ("a" root){2,}',
    ],
)
def test_a_language_without_strings(text):
    grammar = Grammar.from_ebnf("# first\n" + text)
    vocabulary = Vocabulary([b"a", b"aa", b"b", b"</s>"], stop_token_ids=[3])
    for refused in (
        lambda: compile_classes(grammar, vocabulary),
        lambda: recognize(grammar, "a"),
    ):
        with pytest.raises(UnsupportedGrammarError, match="the language is empty") as caught:
            refused()
        assert (caught.value.construct, caught.value.line, caught.value.column) == ("root", 2, 1)
    kept = compile_classes(grammar, vocabulary, prune=False)
    assert kept.class_of[2] == -1
    assert kept.num_stop_classes == 1


@pytest.mark.parametrize("text", ['root ::= ""', 'root ::= "a"{0}', "root ::= []*", "root ::= []?"])
def test_a_language_of_the_empty_string(text):
    grammar = Grammar.from_ebnf(text)
    found = compile_classes(grammar, Vocabulary([b"a", b"</s>"], stop_token_ids=[1]))
    assert found.class_of.tolist() == [-1, 0]
    assert recognize(grammar, "").accepted
    assert not recognize(grammar, "a").accepted


def test_errors_are_those_that_are_documented():
    """What all these files rely on: the names are exceptions of the package."""
    for name in NAMED - {"ok"}:
        assert issubclass(getattr(tokfold, name), tokfold.TokfoldError)
    with pytest.raises(LimitExceededError):
        Grammar.from_ebnf('root ::= "abc"', limits=Limits(max_grammar_bytes=3))
