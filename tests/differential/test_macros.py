"""Macros in our own engine: beside Python's ``re``, naive recognizers, and plain XGrammar.

``Regex`` and ``Substring`` are our own reader's; where ours and XGrammar's automata mean the same,
masks are the same, but for XGrammar's known faults, each of which a recognizer that knows nothing
of automata confirms:

- *contradiction*: its mask says one thing of a token and its own ``accept_token`` another;
- *dead end*: it takes what can never be completed, since it does not prune;
- *miscount*: it lends the count of one large repetition to another;
- *built wrongly*: some patterns with a bounded repetition under ``?`` or ``|`` become another
  automaton: ``Regex("(c{2,3})?")`` takes ``c``. Ours are compared with ``re`` alone there.

Lookaround, anchors inside of a pattern, and ``.`` at the end of a line are not here: XGrammar
refuses them, warns of them, or takes the line end.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise, product
from random import Random
from typing import Any

import numpy as np
import pytest
from oracles.earley import Oracle, State
from oracles.model import CharClass, Choice, Expr, Grammar, Literal, Repeat, Seq
from strategies.engine import mask_of
from strategies.printed import read_printed
from strategies.profiles import CASES, LONG, LONG_FACTOR

xgr = pytest.importorskip("xgrammar")

import tokfold  # noqa: E402
from oracles import xgrammar_doors  # noqa: E402
from strategies.engine import compiled_with  # noqa: E402
from tokfold.xgrammar.forms import GrammarForm  # noqa: E402
from tokfold.xgrammar.spelling import in_bytes, needs_bytes, spell  # noqa: E402

MANY = LONG_FACTOR if LONG else 1
STOP = b""  # XGrammar takes one with bytes where these complete the text


class Beside:
    """Our matcher and XGrammar's over one grammar, and what a recognizer says of both.

    Args:
        grammar: ours.
        theirs: XGrammar's.
        tokens: the vocabulary, without the stop token.
        oracle: decides where they differ.
        spelled: whether the oracle is in the byte spelling.
    """

    def __init__(
        self, grammar: tokfold.Grammar, theirs: Any, tokens: list[bytes], oracle: Oracle, **options
    ) -> None:
        self.tokens = tokens
        self.stop = len(tokens)
        self.size = self.stop + 1
        vocabulary = tokfold.Vocabulary([*tokens, STOP], stop_token_ids=[self.stop])
        self.ways = [
            compiled_with(grammar, vocabulary, classes=classes, check_tokens=False)
            for classes in ("never", "now")
        ]
        info = xgr.TokenizerInfo(
            [*tokens, STOP], vocab_type=xgr.VocabType.RAW, stop_token_ids=[self.stop]
        )
        compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.theirs = compiler.compile_grammar(theirs)
        self.oracle = oracle
        self.spelled: bool = options.get("spelled", False)
        self.always: bool = options.get("always", True)

    def feed(self, state: State, data: bytes) -> State:
        return state.feed(in_bytes(data) if self.spelled else data)

    def walk(self, random: Random, steps: int, text: bytes | None = None) -> bytes:
        """Along random tokens that are allowed, or along a text."""
        matchers = [tokfold.Matcher(compiled) for compiled in self.ways]
        theirs = xgr.GrammarMatcher(self.theirs)
        states = {prune: self.oracle.initial(prune) for prune in (True, False)}
        for _ in range(steps):
            bits = self.compare(matchers, theirs, states)
            if text is None:
                allowed = [t for t in range(self.stop) if bits[t]]
            else:
                rest = text[len(matchers[0].text) :]
                allowed = [t for t in range(self.stop) if rest.startswith(self.tokens[t])]
            if not allowed:
                break
            token = random.choice(allowed)
            assert all(matcher.accept_token(token) for matcher in matchers), self.tokens[token]
            assert theirs.accept_token(token), (matchers[0].text, self.tokens[token])
            states = {
                prune: self.feed(state, self.tokens[token]) for prune, state in states.items()
            }
        if text is not None:
            assert matchers[0].text == text
            assert matchers[0].is_accepting
        return matchers[0].text

    def compare(self, matchers: list[Any], theirs: Any, states: dict[bool, State]) -> list[bool]:
        bits, *others = (mask_of(matcher, self.size)[0] for matcher in matchers)
        assert all(other == bits for other in others)
        bitmask = xgr.allocate_token_bitmask(1, self.size)
        theirs.fill_next_token_bitmask(bitmask)
        row = np.unpackbits(bitmask.numpy().view(np.uint8), bitorder="little")[: self.size]
        text = matchers[0].text
        CASES["macros: masks beside XGrammar's"] += 1
        assert bits[self.stop] == matchers[0].is_accepting == bool(row[self.stop]), text
        assert bits[self.stop] == states[True].accepting, text
        for token in range(self.stop):
            differs = bits[token] != bool(row[token])
            if not differs and not self.always:
                continue
            data = self.tokens[token]
            truth = self.feed(states[True], data).viable
            CASES["macros: bits against a recognizer"] += 1
            assert bits[token] == truth, (text, data)
            if differs:
                taken = theirs.fork().accept_token(token)
                fault = "contradiction" if taken == truth else "dead end"
                dead = fault == "contradiction" or self.feed(states[False], data).viable
                assert dead, (text, data, "XGrammar differs for no known reason")
                CASES[f"macros: XGrammar's fault, {fault}"] += 1
        return bits


# ---------------------------------------------------------------------- Regex

LETTERS = "abc"


def random_pattern(random: Random, depth: int) -> tuple[str, Expr]:
    """A pattern and what it means; the pattern can be repeated as it is."""
    kind = random.randrange(8) if depth else random.randrange(2)
    if kind == 0:
        letter = random.choice(LETTERS)
        return letter, Literal(letter.encode())
    if kind == 1:
        letters = sorted(random.sample(LETTERS, random.randint(1, 2)))
        ranges = tuple((ord(x), ord(x)) for x in letters)
        negated = random.random() < 0.2
        return f"[{'^' * negated}{''.join(letters)}]", CharClass(ranges, negated)
    parts = [random_pattern(random, depth - 1) for _ in range(random.randint(2, 3))]
    texts, meanings = [text for text, _ in parts], tuple(meaning for _, meaning in parts)
    if kind <= 3:
        return f"({''.join(texts)})", Seq(meanings)
    if kind == 4:
        return f"({'|'.join(texts)})", Choice(meanings)
    text, meaning = parts[0]
    low, high = random.choice([(0, 1), (0, None), (1, None), (2, 3), (0, 2), (1, 4), (3, None)])
    marks = {(0, 1): "?", (0, None): "*", (1, None): "+"}
    mark = marks.get((low, high)) or f"{{{low},{'' if high is None else high}}}"
    lazy = "?" if random.random() < 0.1 else ""  # says nothing of which texts there are
    return f"({text}{mark}{lazy})", Repeat(meaning, low, high)


def is_built_wrongly(pattern: str) -> bool:
    """Whether XGrammar's own verdicts on short words are not those of ``re``."""
    info = xgr.TokenizerInfo([bytes([b]) for b in range(256)], xgr.VocabType.RAW, stop_token_ids=[])
    compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    compiled = compiler.compile_grammar(f'root ::= Regex("{pattern}")')
    for length in range(6):
        for letters in product(LETTERS, repeat=length):
            word = "".join(letters)
            matcher = xgr.GrammarMatcher(compiled)
            taken = matcher.accept_string(word) and matcher.is_completed()
            if taken != bool(re.fullmatch(pattern, word)):
                CASES["macros: patterns that XGrammar builds wrongly"] += 1
                return True
    return False


WRONG = [("(c{2,3})?", "c"), ("(a{3,})?", "a"), ("b|a|(b{1,4})", "ab")]


@pytest.mark.parametrize(("pattern", "word"), WRONG)
def test_patterns_that_xgrammar_builds_wrongly(pattern, word):
    """If this fails XGrammar was mended."""
    assert is_built_wrongly(pattern)
    macro = tokfold.Grammar.from_ebnf(f'root ::= Regex("{pattern}")')
    for grammar in (
        macro,
        xgrammar_doors.regex_grammar(pattern),
        tokfold.Grammar.from_regex(pattern),
    ):
        assert not tokfold.recognize(grammar, word).accepted
    assert not re.fullmatch(pattern, word)


AROUND = {
    "alone": ("root ::= {}", lambda expr: expr),
    "between": ('root ::= "x" {} "y"', lambda expr: Seq((Literal(b"x"), expr, Literal(b"y")))),
    "repeated": (
        'root ::= part ("," part){{0,2}}\npart ::= {}',
        lambda expr: Seq((expr, Repeat(Seq((Literal(b","), expr)), 0, 2))),
    ),
    "twice": ("root ::= {0} | [xy] {0}", lambda expr: Choice((expr, Seq((XY, expr))))),
}
XY = CharClass(((120, 121),))


def letters_vocabulary(random: Random) -> list[bytes]:
    some = {bytes(random.choices(b"abcxy,", k=random.randint(2, 4))) for _ in range(12)}
    return [bytes([b]) for b in b"abcdxy,"] + sorted(some)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("seed", range(30 * MANY))
def test_random_patterns(around, seed):
    random = Random(f"{around} {seed}")
    pattern, meaning = random_pattern(random, random.randint(1, 4))
    if random.random() < 0.2:
        pattern = f"^{pattern}$"
    text, put = AROUND[around]
    text = text.format(f'Regex("{pattern}")')
    grammar = tokfold.Grammar.from_ebnf(text)
    theirs = xgr.Grammar.from_ebnf(text)
    oracle = Oracle(Grammar({"root": put(meaning)}))
    read: list[bytes] = []
    if not is_built_wrongly(pattern):
        beside = Beside(grammar, theirs, letters_vocabulary(random), oracle)
        read = [beside.walk(random, 8) for _ in range(2)]
    for word in [*read, *(bytes(random.choices(b"abc", k=n)) for n in range(7))]:
        accepted = tokfold.recognize(grammar, word).accepted
        assert accepted == oracle.accepts(word), (pattern, word)
        if around == "alone":
            assert accepted == bool(re.fullmatch(pattern, word.decode())), (pattern, word)
            CASES["macros: texts against re"] += 1


ESCAPES = [
    r"\d+\.\d{2}",
    r"\w+@\w+\.(com|org)",
    r"[\w.-]*[^\w.-]",
    r"\s*\S\s?",
    r"\D\W",
    r"[a-c\-\]]+",
    r"\x41\u0042+",
    r"(?:ab|a)(?:bc|c)",
    r"(?:(a)b)",
    r"a\|b\\c\/",
    r"[!-/:-@]+",
    r"",
    r"()|a",
    r"(a|b|)c",
]


@pytest.mark.parametrize("pattern", ESCAPES)
def test_escapes_and_classes_are_those_of_re(pattern):
    random = Random(pattern)
    text = f"root ::= Regex({json.dumps(pattern)})"
    grammar = tokfold.Grammar.from_ebnf(text)
    compiled = tokfold.compile(
        grammar,
        tokfold.Vocabulary([bytes([b]) for b in range(32, 127)]),
        options=tokfold.CompileOptions(check_tokens=False),
    )
    meant = re.compile(pattern, re.ASCII)
    found = 0
    for _ in range(150 * MANY):
        matcher = tokfold.Matcher(compiled)
        for _ in range(random.randint(0, 14)):
            bits, _ = mask_of(matcher, 95)
            allowed = [token for token, bit in enumerate(bits) if bit]
            if not allowed:
                break
            if random.random() < 0.7:  # go on to what the pattern names
                allowed = [token for token in allowed if chr(token + 32) in pattern] or allowed
            # one step into what is refused, now and then
            token = random.choice(allowed) if random.random() < 0.95 else random.randrange(95)
            if not matcher.accept_token(token):
                word = matcher.text.decode() + chr(token + 32)
                assert not meant.fullmatch(word), word
        word = matcher.text.decode()
        assert matcher.is_accepting == bool(meant.fullmatch(word)), word
        found += matcher.is_accepting
        CASES["macros: texts against re"] += 1
    assert found


LARGE = {
    "a{129,140}": None,
    "(ab|c){2,300}": None,
    "(a|xb){2,300}c|[a-c]{150,}": None,
    "(a?){200}b": "a{0,200}b",
    "(a?b?){150}": "(?>ab?|b){0,150}",
    "(a{130}b){2}": None,
    "((ab?){129,131}c)*": None,
    "(a|b){130,200}c": None,
    "x(a{0,150}b|a{140,})": None,
}
"""Patterns, and the same for ``re`` where that would take for ever."""


@pytest.mark.parametrize("pattern", LARGE)
def test_large_repetitions_count(pattern):
    """Also where XGrammar's own matcher miscounts."""
    meant = re.compile(LARGE[pattern] or pattern)
    random = Random(pattern)
    grammar = tokfold.Grammar.from_ebnf(f'root ::= Regex("{pattern}")')
    compiled = tokfold.compile(
        grammar,
        tokfold.Vocabulary([b"a", b"b", b"c", b"x"]),
        options=tokfold.CompileOptions(check_tokens=False),
    )
    for _ in range(30):
        count = random.choice([0, 1, 2, 128, 129, 130, 131, 140, 141, 149, 150, 151, 200, 201, 300])
        unit = random.choice(["a", "ab", "c", "xb", "b", "abb"])
        word = random.choice(["", "x"]) + unit * count + random.choice(["", "b", "c", "a", "bc"])
        word += word * (random.random() < 0.3)
        matcher = tokfold.Matcher(compiled)
        accepted = matcher.accept_string(word) and matcher.is_accepting
        assert accepted == bool(meant.fullmatch(word)), word
        assert accepted == tokfold.recognize(grammar, word).accepted
        CASES["macros: texts against re"] += 1


def test_xgrammar_miscounts_and_we_do_not():
    """If this fails XGrammar was mended: the wrapper need not refuse such patterns any more."""
    text = 'root ::= Regex("(a|xb){2,300}c|[a-c]{150,}")'
    info = xgr.TokenizerInfo([bytes([b]) for b in range(256)], xgr.VocabType.RAW, stop_token_ids=[])
    compiled = xgr.GrammarCompiler(info, cache_enabled=False).compile_grammar(text)
    assert xgr.GrammarMatcher(compiled).accept_string("aaaaabx")
    assert tokfold.recognize(tokfold.Grammar.from_ebnf(text), "aaaaabx").read == 6


# ------------------------------------------------------------------ Substring


@pytest.mark.parametrize("seed", range(20 * MANY))
def test_substring_is_each_run_of_chunks(seed):
    random = Random(seed)
    chunks = ["".join(random.choices("abé", k=random.randint(1, 3))) for _ in range(5)]
    chunks = chunks[: random.randint(1, 5)]
    if random.random() < 0.3:
        chunks = [random.choice(chunks)] * 3
    grammar = tokfold.Grammar.from_ebnf(f"root ::= Substring({', '.join(map(json.dumps, chunks))})")
    runs = {"".join(chunks[i:j]) for i in range(len(chunks) + 1) for j in range(i, len(chunks) + 1)}
    others = {"".join(random.choices("abé", k=random.randint(0, 6))) for _ in range(60)}
    others |= {run[:-1] for run in runs} | {run + "a" for run in runs}
    for word in runs | others:
        found = tokfold.recognize(grammar, word)
        assert found.accepted == (word in runs), (chunks, word)
        data = word.encode()
        read = max(n for n in range(len(data) + 1) if any(r.encode()[:n] == data[:n] for r in runs))
        assert found.read == read
        CASES["macros: texts against runs of chunks"] += 1


# ---------------------------------------------------------------- TagDispatch

DISPATCHES = {
    "two tags": 'root ::= TagDispatch(("<a>", x), ("<b>", y))\nx ::= [0-9]+ "</a>"\ny ::= "b"*\n',
    "once": 'root ::= TagDispatch(("<a>", x), loop_after_dispatch=false)\nx ::= "b" | "bb" ">"\n',
    "overlapping": (
        'root ::= TagDispatch(("aab", x), ("ab", y), ("b<", x))\nx ::= "1"\ny ::= "2" x\n'
    ),
    "one begins another": 'root ::= TagDispatch(("ab", x), ("abb", y))\nx ::= "1"\ny ::= "2"\n',
    "excluded": 'root ::= TagDispatch(("<a", x), excludes=("bb", "<b>"))\nx ::= ">" [^<]* "<"\n',
    "excluded within a tag": 'root ::= TagDispatch(("a<b", x), excludes=("<",))\nx ::= "1"\n',
    "stops": 'root ::= text ">"\ntext ::= TagDispatch(excludes=(">", "<b"))\n',
    "empty content": 'root ::= TagDispatch(("<", x), ("a", y))\nx ::= "" | "b"\ny ::= ""\n',
    "nested": (
        'root ::= "<" TagDispatch(("a", x), loop_after_dispatch=false)\n'
        'x ::= "1" inner ">"\ninner ::= TagDispatch(("b", root), excludes=(">",))\n'
    ),
    "recursive": 'root ::= TagDispatch(("<", root), excludes=(">",), loop_after_dispatch=false)\n',
    "dead content": 'root ::= TagDispatch(("ab", x), ("<", y))\nx ::= "1" x\ny ::= "2"\n',
    "beside others": 'root ::= "1" | Regex("a+") TagDispatch(("b", x)) "2"\nx ::= ">"\n',
}


def dispatch_tokens() -> list[bytes]:
    pieces = [b"<a>", b"</a>", b"<b>", b"ab", b"aab", b"b<", b"bb", b"1<", b"2a", b">b", b"a<b"]
    return [bytes([b]) for b in b"ab<>/12\xc3\xa9\xff"] + pieces


def byte_oracle(theirs: Any) -> Oracle:
    """From XGrammar's automata, by way of text and of no code of the engine's."""
    form = GrammarForm(theirs)
    assert needs_bytes(form)
    text, root = spell(form)
    return Oracle(read_printed(text, root))


@pytest.mark.parametrize("name", DISPATCHES)
def test_dispatch(name):
    text = DISPATCHES[name]
    grammar, theirs = tokfold.Grammar.from_ebnf(text), xgr.Grammar.from_ebnf(text)
    beside = Beside(grammar, theirs, dispatch_tokens(), byte_oracle(theirs), spelled=True)
    for seed in range(6 * MANY):
        beside.walk(Random(f"{name} {seed}"), 10)


@pytest.mark.parametrize("name", sorted(DISPATCHES.keys() - {"dead content"}))
def test_dispatch_gives_xgrammars_verdicts(name):
    """Byte by byte, where no mask of XGrammar's is in play; nothing here leads nowhere."""
    random = Random(name)
    text = DISPATCHES[name]
    grammar = tokfold.Grammar.from_ebnf(text)
    single = [bytes([b]) for b in range(256)]
    compiled = tokfold.compile(grammar, tokfold.Vocabulary(single))
    info = xgr.TokenizerInfo(single, xgr.VocabType.RAW, stop_token_ids=[])
    theirs = xgr.GrammarCompiler(info, cache_enabled=False).compile_grammar(text)
    for _ in range(150 * MANY):
        ours, plain = tokfold.Matcher(compiled), xgr.GrammarMatcher(theirs)
        for token in random.choices(dispatch_tokens(), k=random.randint(1, 10)):
            for byte in token:
                assert ours.is_accepting == plain.is_completed(), ours.text
                taken = ours.accept_token(byte)
                assert taken == plain.accept_token(byte), (ours.text, byte)
                CASES["macros: bytes beside XGrammar's"] += 1
            if not taken:
                break


# ------------------------------------------------------------------- schemas

SCHEMAS: dict[str, tuple[Any, list[str]]] = {
    "pattern": ({"type": "string", "pattern": "^[a-z]{2,3}-[0-9]+$"}, ['"ab-12"']),
    "pattern, no anchors": (
        {"type": "string", "pattern": "ab|a[0-9é]c"},
        ['"ab"', '"a1c"', '"aéc"'],
    ),
    "pattern, long": ({"type": "string", "pattern": "^[a-c]{1,200}$"}, ['"' + "abc" * 9 + '"']),
    "pattern and minLength": (
        {"type": "string", "pattern": "^a*$", "minLength": 2, "maxLength": 4},
        ['"aaa"'],
    ),
    "date": ({"type": "string", "format": "date"}, ['"2021-12-01"']),
    "uuid": (
        {"type": "string", "format": "uuid"},
        ['"123e4567-e89b-12d3-a456-426614174000"'],
    ),
    "email": ({"type": "string", "format": "email"}, ['"a-b@c.de"']),
    "ipv4": ({"type": "string", "format": "ipv4"}, ['"12.0.0.255"']),
    "enum": ({"enum": ["a-b", "a", 12, None, "é"]}, ['"a-b"', '"a"', '"é"', "12"]),
    "minLength": ({"type": "string", "minLength": 2, "maxLength": 5}, ['"ab1"', '"aéb"']),
    "pattern beside enum": (
        {"anyOf": [{"type": "string", "pattern": "^a+b$"}, {"enum": ["ab", "b"]}]},
        ['"aab"', '"b"'],
    ),
    "pattern in an object": (
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "pattern": "^(b|-)+$"},
                "b": {"type": "array", "items": {"type": "string", "pattern": "^[ab]?$"}},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
        ['{"a": "b-b"}', '{"a":"-","b":["a",""]}'],
    ),
    "pattern of keys": (
        {
            "type": "object",
            "patternProperties": {"^a[0-9]+$": {"type": "integer"}},
            "additionalProperties": False,
        },
        ['{"a1": 2}'],
    ),
}


def json_tokens() -> list[bytes]:
    pieces = ['"a', '":', '",', '{"', '"}', "ab", "aab", "-1", "12", '["', "\\n", "\\u", "00", "é"]
    odd = [b"\xc3", b"\xa9", b"\xff", b'b"', b'a"}', b"\xe0\x80\x80"]
    single = [bytes([b]) for b in b'abcde-@.0123456789"\\{}[],: nu']
    return [*single, *(piece.encode() for piece in pieces), *odd]


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(name):
    schema, texts = SCHEMAS[name]
    source = json.dumps(schema)
    theirs = xgr.Grammar.from_json_schema(source)
    grammar = xgrammar_doors.as_ours(theirs)
    form = GrammarForm(theirs)
    text, root = spell(form)
    oracle = Oracle(read_printed(text, root))
    spelled = needs_bytes(form)
    beside = Beside(grammar, theirs, json_tokens(), oracle, spelled=spelled, always=False)
    for text in texts:
        for seed in range(2 * MANY):
            beside.walk(Random(seed), len(text) + 9, text.encode())
    for seed in range(2 * MANY):
        beside.walk(Random(seed), 15)


def test_a_wrong_bit_is_found_out():
    """Each kind of difference would be seen: ours wrong, and theirs for no known reason."""
    right, other = 'root ::= Regex("a+b")', 'root ::= Regex("a+c")'
    tokens = [b"a", b"b", b"c"]

    def meaning(last: bytes) -> Oracle:
        return Oracle(Grammar({"root": Seq((Repeat(Literal(b"a"), 1, None), Literal(last)))}))

    for ours, theirs, oracle in ((right, right, b"c"), (right, other, b"b"), (right, other, b"c")):
        grammar = tokfold.Grammar.from_ebnf(ours)
        beside = Beside(grammar, xgr.Grammar.from_ebnf(theirs), tokens, meaning(oracle))
        with pytest.raises(AssertionError):
            beside.walk(Random(1), 5, b"aab")


def test_the_vocabularies_split_patterns():
    """Tokens go over the edges of what is repeated, or much of the above would say little."""
    assert any(len(token) > 2 for token in letters_vocabulary(Random(1)))
    assert all(a != b for a, b in pairwise(sorted(dispatch_tokens())))
