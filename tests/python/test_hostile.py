"""Bad input: a named error that says what to do, or the answer, soon, and never a crash.

Each case runs in a process of its own, since what is tested for would take the tests along: a
crash, gigabytes, minutes. The process has 4 GB of address space and some seconds of CPU time, and
most cases run a second time in a thread with a stack of 256 KiB, as a server might start it.
Times are CPU times, so that they hold on a busy machine.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tokfold
from tokfold import (
    ArtifactError,
    Grammar,
    GrammarSyntaxError,
    LimitExceededError,
    Limits,
    TokenClasses,
    UnsupportedGrammarError,
    Vocabulary,
    VocabularyError,
    compile_classes,
    recognize,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs resource limits")

SECONDS = 6.0
"""CPU seconds that a step may take: a guard against what does not end, not a measure. A step takes
about one second on a machine that does nothing else; the limits that see to it count work."""
LAST_SECONDS = 8
"""CPU seconds after which a step is ended (SIGXCPU, -24), so that a failure does not take long."""
SMALL_STACK = 256 << 10
# Bare exceptions that would escape to a user; PanicException is not even an Exception.
NAMED = {
    "ok",
    "ArtifactError",
    "GrammarSyntaxError",
    "LimitExceededError",
    "UnsupportedGrammarError",
    "VocabularyError",
}

CHILD = """
import json, resource, sys, threading, time
gigabytes, seconds, stack = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import builtins
from tokfold import *
import tokfold.recognition, tokfold.classes, tokfold.grammar
resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30, gigabytes << 30))
BYTES = [bytes([b]) for b in range(256)]
MORE = [b"ab", b"aa", b"((", b"))", b"()", b"xx", b'","', b"123", b"stop"]
WORDS = Vocabulary([*BYTES, *MORE], stop_token_ids=[264])
STEPS = []

def step(name, work):
    began = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(began) + 1 + seconds, resource.RLIM_INFINITY))
    result, value, limit = None, None, None
    try:
        result = work()
        outcome = "ok"
    except BaseException as error:
        outcome, value = type(error).__name__, str(error)[:500]
        limit = getattr(error, "limit", None)
    if outcome == "ok":
        value = {"Recognition": lambda r: [r.accepted, r.read], "TokenClasses": len}.get(
            type(result).__name__, lambda r: None)(result)
    took = time.process_time() - began
    print(json.dumps([name, outcome, value, limit, round(took, 3)]), flush=True)
    return result

def both(text, sample, vocabulary=WORDS):
    "Read, fold with and without pruning, recognize."
    grammar = step("read", lambda: Grammar.from_ebnf(text))
    if grammar is not None:
        step("pruned", lambda: compile_classes(grammar, vocabulary))
        step("unpruned", lambda: compile_classes(grammar, vocabulary, prune=False))
        step("recognized", lambda: recognize(grammar, sample))

def main():
    exec(builtins.compile(sys.stdin.read(), "case", "exec"), globals())

if stack:
    threading.stack_size(stack)
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
else:
    main()
print("end", flush=True)
"""


class Step:
    """What became of one call in the other process."""

    def __init__(self, name: str, outcome: str, value, limit: str | None, seconds: float) -> None:
        self.name, self.outcome, self.value = name, outcome, value
        self.limit, self.seconds = limit, seconds

    def __repr__(self) -> str:
        return f"{self.name}: {self.outcome} {self.value} in {self.seconds} s"


def run(body: str, stack: int = 0, prefix: str = "") -> dict[str, Step]:
    """The steps of a script, after checking that it ended by itself."""
    process = subprocess.run(
        [sys.executable, "-c", prefix + CHILD, "4", str(LAST_SECONDS), str(stack)],
        input=textwrap.dedent(body),
        env={**os.environ, "PYTHONPATH": str(Path(tokfold.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    *lines, end = process.stdout.splitlines() or [""]
    steps = [Step(*json.loads(line)) for line in lines if line.startswith("[")]
    trouble = f"ended with {process.returncode} after {steps}: {process.stderr[:300]}"
    assert (process.returncode, end) == (0, "end"), trouble
    return {step.name: step for step in steps}


def check(steps: dict[str, Step], seconds: float = SECONDS) -> dict[str, Step]:
    """Hold every step against what any input may come to."""
    assert steps
    for step in steps.values():
        assert step.outcome in NAMED, step
        assert step.seconds < seconds, step
        if step.outcome != "ok":
            assert len(step.value) > 30, "says what to do"
    return steps


def outcomes(steps: dict[str, Step]) -> list[str]:
    return [step.outcome for step in steps.values()]


RULES = """
N = {n}
def rules(first, each, last=""):
    lines = [first, *(each(i) for i in range(N)), *([last] if last else [])]
    return "\\n".join(lines)
"""

# Name: number of rules, text, sample, and what recognition must say, where it says something.
MANY_RULES = {
    "flat": (
        100_000,
        """rules("root ::= " + " | ".join(f"r{i}" for i in range(N)),
                 lambda i: f'r{i} ::= "k{i}"')""",
        '"k99999"',
        [True, 6],
    ),
    "chain": (
        100_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "x" r{i + 1}', f'r{N} ::= "y"')""",
        '"x" * N + "y"',
        [True, 100_001],
    ),
    "chain of 5,000": (
        5_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "x" r{i + 1}', f'r{N} ::= "y"')""",
        '"x" * N + "y"',
        [True, 5_001],
    ),
    "left chain": (
        100_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= r{i + 1} "x" | r{i + 1} "y"',
                 f'r{N} ::= "y"')""",
        '"y" + "xy" * (N // 2)',
        [True, 100_001],
    ),
    "left chain of 2,000": (
        2_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= r{i + 1} "x" | r{i + 1} "y"',
                 f'r{N} ::= "y"')""",
        '"y" + "xy" * (N // 2)',
        [True, 2_001],
    ),
    "cycle of 2,000": (
        2_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "x" r{(i + 1) % N} | "y"')""",
        '"x" * 100_000 + "y"',
        [True, 100_001],
    ),
    "cycle of 100,000": (
        100_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "x" r{(i + 1) % N} | "y"')""",
        '"x" * 1_000 + "y"',
        [True, 1_001],
    ),
    "bracket cycle of 2,000": (
        2_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "(" r{(i + 1) % N} ")" r{i * 7 % N} | "y"')""",
        '"(" * 300 + "y" + ")y" * 300',
        [True, 901],
    ),
    "bracket cycle of 100,000": (
        100_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "(" r{(i + 1) % N} ")" r{i * 7 % N} | "y"')""",
        '"(" * 300 + "y" + ")y" * 300',
        [True, 901],
    ),
    "left cycle of 2,000": (
        2_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= r{(i + 1) % N} "x" | "y"')""",
        '"y" + "x" * 2_000',
        None,
    ),
    "left cycle of 100,000": (
        100_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= r{(i + 1) % N} "x" | "y"')""",
        '"y"',
        None,
    ),
    "tangled left cycle of 300": (
        300,
        """rules("root ::= r0",
                 lambda i: f'r{i} ::= r{(i + 1) % N} "x" | r{i * 7 % N} "z" | "y"')""",
        '"y" + "xz" * 100',
        [True, 201],
    ),
    "names only": (
        100_000,
        """rules("root ::= r0", lambda i: f"r{i} ::= r{i + 1}", f'r{N} ::= "y"')""",
        '"y"',
        [True, 1],
    ),
    "right-nested, 2,000": (
        2_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "(" r{i + 1} ")" | "[" r{i + 1} "]"',
                 f'r{N} ::= "y"')""",
        '"([" * (N // 2) + "y" + "])" * (N // 2)',
        [True, 4_001],
    ),
    "right-nested": (
        100_000,
        """rules("root ::= r0", lambda i: f'r{i} ::= "(" r{i + 1} ")" | "[" r{i + 1} "]"',
                 f'r{N} ::= "y"')""",
        '"(" * 100',
        [False, 100],
    ),
    # Each level is a frame of the stack: recognition may give up.
    "doubling": (
        3_000,
        """rules("root ::= r0", lambda i: f"r{i} ::= r{i + 1} r{i + 1}", f'r{N} ::= "y"')""",
        '"yyyy"',
        [False, 4],
    ),
    "optional rules": (
        3_000,
        """rules("root ::= " + " ".join(f"r{i}" for i in range(N)),
                 lambda i: f'r{i} ::= "k{i}" | ""')""",
        '"k1k2k2999"',
        [True, 9],
    ),
    "unused": (
        300_000,
        """rules('root ::= "a"', lambda i: f'a_rule_that_nobody_uses_{i} ::= "x"')""",
        '"a"',
        [True, 1],
    ),
}


@pytest.mark.parametrize("name", MANY_RULES)
def test_many_rules(name):
    n, text, sample, expected = MANY_RULES[name]
    steps = check(run(RULES.format(n=n) + f"both({text}, {sample})"))
    found = steps["recognized"]
    if expected is None:
        assert found.outcome == "LimitExceededError"
    else:
        # The limits may be reached, but then in the same way for folding.
        assert (found.outcome, found.value) == ("ok", expected) or (
            {s.limit for s in steps.values()} - {None} and found.outcome == "LimitExceededError"
        )
        if n <= 2_000:
            assert outcomes(steps) == ["ok"] * 4


@pytest.mark.parametrize(
    "name", [n for n in MANY_RULES if MANY_RULES[n][0] <= 5_000 and n != "optional rules"]
)
def test_many_rules_on_a_small_stack(name):
    n, text, sample, _ = MANY_RULES[name]
    steps = run(RULES.format(n=n) + f"both({text}, {sample})", SMALL_STACK)
    assert set(outcomes(steps)) <= NAMED


@pytest.mark.parametrize("name", ["names only", "left cycle of 100,000", "unused"])
def test_100_000_rules_on_a_small_stack(name):
    n, text, sample, _ = MANY_RULES[name]
    check(run(RULES.format(n=n) + f"both({text}, {sample})", SMALL_STACK))


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


@pytest.mark.parametrize("name", GRAMMARS)
def test_grammars(name):
    text, sample, expected = GRAMMARS[name]
    steps = check(run(f"both({text}, {sample})"))
    found = steps.get("recognized")
    if expected is None:
        assert found is None
        assert steps["read"].outcome in ("LimitExceededError", "GrammarSyntaxError")
    elif name not in MAY_REACH_A_LIMIT or found.outcome != "LimitExceededError":
        assert (found.outcome, found.value) == ("ok", expected)


SMALL = ["1,000 levels", "10,000 levels", "10,000 stars", "subset construction", "ambiguous"]
SMALL += ["ambiguous brackets", "2,000 optional words", "10 MB, alternatives"]


@pytest.mark.parametrize("name", SMALL)
def test_grammars_on_a_small_stack(name):
    text, sample, _ = GRAMMARS[name]
    check(run(f"both({text}, {sample})", SMALL_STACK))


@pytest.mark.parametrize("levels", [900, 5_000, 1_000_000])
@pytest.mark.parametrize("stack", [0, SMALL_STACK])
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


def test_tokens_past_the_view_of_a_repetition_are_apart():
    """Copies are written out for tokens of up to a kilobyte; the others are classes of their own,
    but for those whose beginning is dead."""
    long = [b"a" * n for n in (1_000, 1_024, 1_025, 3_000, 3_001)]
    tokens = [b"a", b"b", *long, b"b" * 3_000, b"a" * 3_000]
    cut = compile_classes(Grammar.from_ebnf('root ::= "a"{0,1000000}'), Vocabulary(tokens))
    assert cut.class_of[1] == cut.class_of[7] == -1
    assert len(set(cut.class_of[4:7].tolist())) == 3
    assert cut.class_of[5] == cut.class_of[8]
    assert cut.stats["over_budget_tokens"] >= 4
    star = compile_classes(Grammar.from_ebnf('root ::= "a"*'), Vocabulary(tokens))
    assert star.class_of.tolist() == [0, -1, 0, 0, 0, 0, 0, -1, 0]


@pytest.mark.parametrize("stack", [0, SMALL_STACK])
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

INTERRUPTED = {
    "repetitions written out": 'root ::= ((([ab] "a"){1,99}){1,99}){1,99}',
    "optional parts": "root ::= " + '"a"? ' * 12_000,
    "subsets": "root ::= ((([ab] [ab]?){1,30}){1,30} [ab]){1,20}",
    "a left-recursive cycle": "root ::= r0\n"
    + "\n".join(f'r{i} ::= r{(i + 1) % 3_000} "x" | "y"' for i in range(3_000)),
    "many rules": "root ::= r0\n"
    + "\n".join(f'r{i} ::= "x" r{i + 1}' for i in range(100_000))
    + '\nr100000 ::= "y"',
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupt_while_a_network_is_made(name):
    """Heard at once, whatever is being done; the bound is a guard, not a measure."""
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
        signal.setitimer(signal.ITIMER_PROF, 0.25)
        step("work", lambda: recognize(grammar, "a" * 10_000, ANY))
        """
    found = run(body)["work"]
    assert found.outcome == "KeyboardInterrupt"
    assert 0.1 < found.seconds < 0.25 + 2


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


# Files that are no grammars

TEXT = 'root ::= "ab" [a-z]* (digit | "é"{1,3})? # note\ndigit ::= [0-9] | Token(1)\n'


def refusal(make) -> GrammarSyntaxError | None:
    """The syntax error, if there is one."""
    try:
        make()
    except GrammarSyntaxError as error:
        return error
    return None


def test_truncated_texts():
    """Cut anywhere: a grammar or a syntax error within the text."""
    read = 0
    for end in range(len(TEXT)):
        cut = TEXT[:end]
        error = refusal(lambda cut=cut: Grammar.from_ebnf(cut))
        if error is None:
            read += 1
            continue
        lines = cut.split("\n")
        assert 1 <= error.line <= len(lines), (cut, error)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1, (cut, error)
        assert str(error).startswith(f"line {error.line}, column {error.column}: ")
    assert 0 < read < len(TEXT)


def test_truncated_files(tmp_path):
    """Also inside a character."""
    data = TEXT.encode()
    errors = []
    for end in range(len(data)):
        (tmp_path / "g").write_bytes(data[:end])
        errors.append(refusal(lambda: Grammar.from_file(tmp_path / "g")))
    assert {error.line for error in errors if error is not None} <= {1, 2, 3}
    assert any("is not UTF-8" in str(error) for error in errors)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\xff\xfe",
        bytes(range(256)),
        b"\x7fELF" + bytes(1000),
        b"\x89PNG\r\n\x1a\n",
        b"PK",
    ],
)
def test_binary_files(tmp_path, data):
    (tmp_path / "g").write_bytes(data)
    with pytest.raises(GrammarSyntaxError) as caught:
        Grammar.from_file(tmp_path / "g")
    assert (caught.value.line <= 2, len(str(caught.value)) > 20) == (True, True)


def test_a_large_binary_file(tmp_path):
    (tmp_path / "g").write_bytes(os.urandom(1000) + bytes(10_000_000))
    body = f"step('read', lambda: Grammar.from_file({str(tmp_path / 'g')!r}))"
    assert check(run(body))["read"].outcome == "GrammarSyntaxError"


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        Grammar.from_file(tmp_path / "none")
    with pytest.raises(OSError, match=r"directory|denied"):
        Grammar.from_file(tmp_path)


# Vocabularies


@pytest.mark.parametrize("tokens", [[], [b""], [None, b""]])
def test_an_empty_vocabulary(tokens):
    with pytest.raises(VocabularyError, match="empty"):
        Vocabulary(tokens)


@pytest.mark.parametrize("stop", [[3], [-1], [2**32], [2**70], [0, 3]])
def test_a_stop_token_outside(stop):
    with pytest.raises(VocabularyError, match=r"stop_token_ids"):
        Vocabulary([b"a", b"b", b"c"], stop_token_ids=stop)


@pytest.mark.parametrize("stack", [0, SMALL_STACK])
def test_a_token_of_a_megabyte(stack):
    body = """
        M = 1_000_000
        for name, text, token in (
            ("star", "root ::= [a-z]*", b"a" * M),
            ("open", 'root ::= "(" root ")" | "a"', b"(" * M),
            ("close", 'root ::= "(" root ")" | "a"', b")" * M),
            ("both", 'root ::= "(" root ")" | "a"', b"(" * (M // 2) + b")" * (M // 2)),
            ("ambiguous", 'root ::= root root | root root root | "a" | ""', b"a" * M),
            ("palindrome", 'root ::= "a" root "a" | "b" root "b" | ""', b"ab" * (M // 2)),
            ("subsets", 'root ::= [ab]* "a" [ab]{25}', b"ab" * (M // 2)),
        ):
            grammar = Grammar.from_ebnf(text)
            step(name, lambda: compile_classes(grammar, Vocabulary([*BYTES, token])))
        """
    steps = check(run(body, stack))
    assert set(outcomes(steps)) == {"ok"}
    assert steps["star"].value == 1


def test_a_token_of_a_megabyte_and_a_repetition():
    """Its length decides how many copies there are of what is repeated."""
    body = """
        vocabulary = Vocabulary([*BYTES, b"a" * 1_000_000])
        for text in ('root ::= "a"{0,1000000}', 'root ::= ("a" | "b" root "c"){0,1000000}'):
            grammar = Grammar.from_ebnf(text)
            step(text, lambda: compile_classes(grammar, vocabulary))
        """
    check(run(body))


@pytest.mark.parametrize("stack", [0, SMALL_STACK])
@pytest.mark.parametrize("prune", [True, False])
def test_tokens_of_10_000_brackets(stack, prune):
    """Past some depth a token is a class of its own; not one is taken for another."""
    body = """
        text = 'root ::= "(" root ")" root | "[" root "]" root | "(" root "]" | "a" | ""'
        grammar = Grammar.from_ebnf(text)
        tokens = [*BYTES]
        for half in (b"(", b")", b"([", b"])", b")("):
            tokens += [half * n for n in (100, 490, 499, 500, 501, 999, 1000, 1001, 5000)]
        tokens += [b"(" * n + b")" * n for n in (499, 501, 5000)]
        tokens += [b")" * n + b"(" * n for n in (499, 501, 5000)]
        tokens += [b"(" * n + b"a" + b"]" * n for n in (499, 501, 5000)]
        found = step("fold", lambda: compile_classes(grammar, Vocabulary(tokens), prune=PRUNE))
        apart = [found.class_of[tokens.index(b"(" * n)] for n in (100, 499, 1000, 5000)]
        step("apart", lambda: None if len(set(apart)) == 4 else 1 / 0)
        """
    steps = check(run(body.replace("PRUNE", str(prune)), stack))
    assert outcomes(steps) == ["ok", "ok"]


# Artefacts


def test_an_artefact_of_another_tokenizer(tmp_path):
    grammar = Grammar.from_ebnf('root ::= "a"')
    ours, theirs = Vocabulary([b"a", b"b"]), Vocabulary([b"b", b"a"])
    compile_classes(grammar, theirs).save(tmp_path / "x")
    with pytest.raises(ArtifactError, match=r"made for another vocabulary .* compile them again"):
        TokenClasses.load(tmp_path / "x", grammar=grammar, vocabulary=ours)


def test_truncated_artefacts(tmp_path):
    compile_classes(Grammar.from_ebnf('root ::= "a"'), Vocabulary([b"a", b"b"])).save(
        tmp_path / "x"
    )
    data = (tmp_path / "x").read_bytes()
    for end in range(len(data)):
        (tmp_path / "x").write_bytes(data[:end])
        with pytest.raises(ArtifactError, match=r"x: .*(ompile it again|artefact)"):
            TokenClasses.load(tmp_path / "x")


FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
"""


def test_a_full_disk(tmp_path):
    """Nothing is half-written: not beside what stood there, not in the cache."""
    grammar = Grammar.from_ebnf("root ::= [a-z]+")
    compile_classes(grammar, Vocabulary([b"a"])).save(tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    body = f"""
        import warnings
        grammar = Grammar.from_ebnf("root ::= [a-z]+")
        vocabulary = Vocabulary([b"%d" % i for i in range(2_000)] + [b"a"])
        classes = compile_classes(grammar, vocabulary)
        step("save", lambda: classes.save({str(tmp_path / "x")!r}))
        step("save new", lambda: classes.save({str(tmp_path / "y")!r}))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cached = compile_classes(grammar, vocabulary, cache_dir={str(tmp_path / "c")!r})
        assert cached == classes
        messages = [str(w.message) for w in caught]
        step("warned", lambda: next(m for m in messages if "cannot be written" in m))
        """
    steps = run(body, prefix=FULL_DISK)
    assert outcomes(steps) == ["ArtifactError", "ArtifactError", "ok"]
    assert "cannot be written: File too large" in steps["save"].value
    assert (tmp_path / "x").read_bytes() == before
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["x"]


def test_errors_are_those_that_are_documented():
    """What this file relies on: the names are exceptions of the package."""
    for name in NAMED - {"ok"}:
        assert issubclass(getattr(tokfold, name), tokfold.TokfoldError)
    with pytest.raises(LimitExceededError):
        Grammar.from_ebnf('root ::= "abc"', limits=Limits(max_grammar_bytes=3))
