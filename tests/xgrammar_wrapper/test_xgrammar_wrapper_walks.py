"""Wrapped against plain XGrammar, along random walks.

The contract (docs/design/xgrammar.md, "Exactness contract", point 2): a bit of the wrapped mask
equals the plain one, or else the plain one contradicts XGrammar's own ``accept_token`` and the
wrapped one agrees with it.
"""

from __future__ import annotations

import os
import random

import pytest

xgr = pytest.importorskip("xgrammar")
pytest.importorskip("torch")

import numpy as np  # noqa: E402
from tokfold import xgrammar as txgr  # noqa: E402
from tokfold.errors import MatcherStateError, UnsupportedGrammarError  # noqa: E402
from tokfold.xgrammar.forms import IS_028  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def short_jumps():
    """Forced bytes without an end are met at every step of some walks: give up early."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tokfold.xgrammar.matcher.MAX_TRIED", 64)
        yield


SEEDS = range(int(os.environ.get("TOKFOLD_WALK_SEEDS", "6")))

JSON_LIKE = """
root ::= value
value ::= "{" ws (pair ("," ws pair)*)? "}" | "[" ws (value ("," ws value)*)? "]" | string | num
pair ::= string ":" ws value
string ::= "\\"" ([^"\\\\\\x00-\\x1f] | "\\\\" ["\\\\n])* "\\""
num ::= "-"? [0-9]+ ("." [0-9]+)?
ws ::= [ \\n]*
"""

GRAMMARS: dict[str, str] = {
    "json-like": JSON_LIKE,
    "literal choice": 'root ::= "xbxa" | "xc"',
    "left recursive root": 'root ::= root "d" | "c"',
    "nested root": 'root ::= "a" root "b" | ""',
    "root in the middle": 'root ::= "(" root ")" root | [a-c]',
    "recursive root in a repeat": 'root ::= "a" | "[" (root ","){0,3} "]"',
    "expressions": 'root ::= e\ne ::= e "+" e | "(" e ")" | [0-9]+',
    "nullable": 'root ::= a b a\na ::= "x"*\nb ::= ("y" a)?',
    "bounded repeat": 'root ::= "a"{2,5} ("b" "c"?){0,3}',
    "long repeat": 'root ::= [a-c]{3,300} "d"',
    # XGrammar 0.2.9 counts such characters, and decides many tokens by the count alone
    "counted characters": 'root ::= "\\"" [^"\\\\]{2,5} "\\"" | "x" [^,]{0,300} ","',
    "counted side by side": 'root ::= ("(" [^)]{2,4} ")" | "(" [^)]{0,3} ")x")* [^a]{1,3} "a"?',
    "counted in turns": 'root ::= (a | b)* "x"\na ::= [^a]{3,} "a" | "b"\nb ::= [^ab]{1,200} "a"',
    "counted, no less": 'root ::= "a" [^"é]{4} "\\"" [^"é]{4,} "\\"" root?',
    "repeat of a rule": 'root ::= w{2,} "."\nw ::= [a-z]+ " "?',
    "unicode": 'root ::= [é-ü]+ "€"? [^a]*',
    "any character": "root ::= [^]*",
    "nul": 'root ::= "a\\0b" [\\0-\\x02]* "\\0"?',
    "unproductive": 'root ::= "a" root | "b" dead\ndead ::= "c" dead',
    "a rule that cannot begin": 'root ::= "a" dead | "b" root | "x"\ndead ::= dead "x"',
    "only a rule that cannot begin": "root ::= root",
    "nothing after a dead end": 'root ::= "a" dead "b" | "ab" "x"*\ndead ::= dead',
    "surrogates": 'root ::= "\\ud800"* [\\udb00-\\udfff]* "a"?',
    "two surrogates": 'root ::= ("a" "\\ud83d" "\\ude00" | "\\ud83d\\ude00" "b")*',
    "empty": 'root ::= ""',
    "capture": 'root ::= "<" name ">" rest\nname[capture="n"] ::= [a-z]+\nrest ::= [^<]*',
    "capture of the root": 'root[capture="all"] ::= "a" root? "b"',
    "temperature": 'root ::= "a" hot "c"\nhot[temperature=0.7] ::= [a-z]+',
    "token": 'root ::= "a" Token(5) ("b" | Token(7, 9)) "c"*',
    "token or text": 'root ::= (Token(5) "x" | [^"] "y")* "z"',
    "token twice": 'root ::= Token(3) a | Token(4) b\na ::= "a" Token(4)\nb ::= "b" Token(3)',
    "exclude token": 'root ::= "a" ExcludeToken(5, 6) "b"*',
    "tokens until": 'root ::= "a" inner* Token(4)\ninner ::= ExcludeToken(4, 5)',
    "regex": r'root ::= "\"" Regex("a*[b-é]?(xa|.)+") "\""',
    "regex at the root": r'root ::= Regex("^(a|bb|(c|d){2,3})*x$")',
    "regex for JSON": r'root ::= "\"" Regex("^[^a]{1,3}.*$", json_string=true) "\"" ws'
    + "\nws ::= [ ]*",
    "regex with large bounds": r'root ::= Regex("(a|xb){2,300}c") ("," | Regex("1[a-c]{150}x"))',
    "regex beside rules": r'root ::= "[" e ("," e)* "]" | "a" root'
    + "\n"
    + r'e ::= Regex("\\d+|a[^,]?") | root',
    "regex that is stuck": r'root ::= Regex("(a|b)*[^\\s\\S]c|(aa|ab)") "x"',
    "regex beside a token": r'root ::= Regex("a*.") Token(5) (Regex("[^x]") | ExcludeToken(1, 2))*',
    "substring": 'root ::= "a" Substring("xa", "b", "xa", "c") "b"?',
    "tags": 'root ::= TagDispatch(("<a", b), ("xb", c), loop_after_dispatch=true)\n'
    'b ::= [0-9]+ ">" | "é"\nc ::= "x" c? "a"',
    "one tag": 'root ::= "a"? dispatch "c"\n'
    'dispatch ::= TagDispatch(("<", b), loop_after_dispatch=false, excludes=("dd"))\n'
    'b ::= "a" ("," [^,])*',
    "tags in tags": 'root ::= TagDispatch(("<", b), loop_after_dispatch=true)\n'
    'b ::= "a" root "z" | "(" ")"',
    "token that is a stop": "root ::= Token(0) [a-z]* | ExcludeToken(1)",
}

SCHEMAS: dict[str, tuple[object, dict[str, object]]] = {
    "any": ({}, {}),
    "object": (
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
            "required": ["a"],
        },
        {},
    ),
    "custom separators": (
        {"type": "array", "items": {"type": "string"}},
        {"any_whitespace": False, "separators": (";", "=>")},
    ),
    "loose": ({"type": "object", "properties": {"a": {"type": "null"}}}, {"strict_mode": False}),
    "few spaces": ({"type": "array", "items": {"type": "string"}}, {"max_whitespace_cnt": 2}),
    "string": ({"type": "string", "minLength": 2, "maxLength": 4}, {}),
}

SNIPPETS = (
    *("a", "b", "c", "d", "x", "y", "z", "xa", "xbxa", "xb", "dd", "bb", "ab", "aa", "cc", "abc"),
    *("(", ")", "((", "))", "()", "+", "1", "12", "[", "]", ",", "],", "a,", "{", "}", '"', '"a'),
    *('":', '": ', '",', '";', '"=>', '"}', '"]', "\\", "\\n", '\\"', " ", "  ", "\n", ".", "0"),
    *("-", "<", ">", "<a", "a>", "é", "€", "<t>", "t>", "null", "true", 'z"', 'x"y', "]}", "=>"),
)
RAW = (
    *(b"\xc3", b"\xa9", b"\xe2\x82", b"\xac", b"\xf4", b"\x8f\xbf", b"\xf4\x8f", b"\xbf\xbda"),
    *(b"\0", b"\0b", b"a\0", b"a\0b", b"\xff", b"\xed\xa0\x80", "\U0010fffd".encode(), b"\xf0"),
)


def make_vocabulary(rng: random.Random) -> tuple[list[bytes], int, list[int]]:
    """Token bytes, number of ids (with padding), stop tokens."""
    texts = [text.encode() for text in SNIPPETS] + list(RAW)
    texts += ["".join(rng.choices(SNIPPETS, k=rng.randint(2, 3))).encode() for _ in range(40)]
    tokens = rng.sample(texts, rng.randint(12, len(texts)))
    tokens += rng.sample(tokens, rng.randint(0, 4))  # duplicates
    tokens += [b""] * rng.randint(0, 3)
    rng.shuffle(tokens)
    stops = rng.sample(range(len(tokens)), rng.randint(0, 3))
    for token in stops:
        tokens[token] = rng.choice([b"</s>", b"<eos>", b"a", tokens[token] or b"</s>"])
    return tokens, len(tokens) + rng.randint(0, 40), stops


def bits(words: np.ndarray, size: int) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:size].astype(bool)


def jump_forward(matcher: xgr.GrammarMatcher) -> str:
    """XGrammar's own, of whole characters."""
    try:
        return matcher.find_jump_forward_string()
    except UnicodeDecodeError as error:  # XGrammar stops inside a character
        return error.object[: error.start].decode()


class Pair:
    """A plain and a wrapped matcher that take the same steps."""

    def __init__(self, plain: xgr.GrammarMatcher, wrapped: txgr.GrammarMatcher, size: int):
        self.plain, self.wrapped, self.size = plain, wrapped, size
        # beside ExcludeToken, XGrammar's masks are not always what its accept_token takes
        self.masks_agree = wrapped._compiled.is_compressed

    def check(self) -> np.ndarray | None:
        """Compare everything that can be seen; return the wrapped mask, None once terminated."""
        assert self.wrapped.is_terminated() == self.plain.is_terminated()
        assert self.wrapped.is_completed() == self.plain.is_completed()
        assert self.wrapped.stop_token_ids == self.plain.stop_token_ids
        assert self.wrapped.temperature == self.plain.temperature
        for deduplicate in (True, False):
            expected = self.plain.get_captures(deduplicate=deduplicate)
            assert self.wrapped.get_captures(deduplicate=deduplicate) == expected
        num_words = -(-self.size // 32)
        expected_words = np.zeros(num_words, dtype=np.int32)
        words = np.full((2, num_words), -1, dtype=np.int32)
        try:
            expected_apply = self.plain.fill_next_token_bitmask(expected_words)
        except RuntimeError as error:
            # XGrammar 0.2.9 fails where it has lost its way beside characters that it counts
            is_lost = "no repetition parent" in str(error)
            reason = "no repetition parent" if is_lost else "terminated"
            with pytest.raises(RuntimeError, match=reason):
                self.wrapped.fill_next_token_bitmask(words, 1)
            if is_lost:
                return None
            with pytest.raises(RuntimeError, match="terminated"):
                self.wrapped.find_jump_forward_string()
            assert self.wrapped.find_jump_forward_tokens() == []
            return None
        apply = self.wrapped.fill_next_token_bitmask(words, 1)
        assert (words[0] == -1).all(), "another row was written"
        expected_mask, mask = bits(expected_words, self.size), bits(words[1], self.size)
        for token in np.flatnonzero(mask != expected_mask).tolist():
            accepted = self.plain.fork().accept_token(token)
            assert accepted != expected_mask[token], f"token {token}: plain is consistent"
        if (mask == expected_mask).all():
            assert apply == expected_apply
        assert apply == (not mask.all())
        if self.wrapped._compiled.is_compressed:
            assert not bits(words[1], num_words * 32)[self.size :].any()
            self.check_class_mask(mask, apply)
        try:
            jump = self.wrapped.find_jump_forward_string()
        except MatcherStateError:  # XGrammar would follow the bytes until memory runs out
            pass
            with pytest.raises(MatcherStateError):
                self.wrapped.find_jump_forward_tokens()
        else:
            assert jump == jump_forward(self.plain)
            tokens = self.wrapped.find_jump_forward_tokens()
            if not IS_028:
                assert tokens == self.plain.find_jump_forward_tokens()
        return mask

    def check_class_mask(self, mask: np.ndarray, apply: bool) -> None:
        row = txgr.allocate_class_bitmask(1, self.wrapped._compiled)
        assert self.wrapped.fill_next_class_bitmask(row) == apply
        by_class = bits(row.numpy()[0], row.shape[1] * 32)
        assert (by_class[self.wrapped.class_of_token] == mask).all()

    def check_every_token(self, mask: np.ndarray, stops: list[int]) -> None:
        """A mask bit says what accept_token does, for every token."""
        for token in range(self.size):
            accepted = self.wrapped.fork().accept_token(token)
            assert accepted == self.plain.fork().accept_token(token), token
            if self.masks_agree and not (IS_028 and token in stops):
                assert accepted == mask[token], token

    def step(self, rng: random.Random, mask: np.ndarray | None) -> None:
        choice = rng.random()
        allowed = [] if mask is None else np.flatnonzero(mask).tolist()
        if choice < 0.6 and allowed:
            token = rng.choice(allowed)
            assert self.wrapped.accept_token(token) == self.plain.accept_token(token)
        elif choice < 0.7:
            token = rng.randrange(-2, self.size + 3)
            assert self.wrapped.accept_token(token) == self.plain.accept_token(token)
        elif choice < 0.78:
            text = rng.choice(SNIPPETS)
            assert self.wrapped.accept_string(text) == self.plain.accept_string(text)
        elif choice < 0.88:
            count = rng.randint(0, 3)
            try:
                self.plain.rollback(count)
            except RuntimeError:
                with pytest.raises(RuntimeError, match="rollback"):
                    self.wrapped.rollback(count)
            else:
                self.wrapped.rollback(count)
        elif choice < 0.95:
            old = self.plain, self.wrapped
            self.plain, self.wrapped = self.plain.fork(), self.wrapped.fork()
            for matcher in old:  # the old one goes on alone and must not matter
                matcher.accept_string("a")
        else:
            self.plain.reset()
            self.wrapped.reset()


def walk(pair: Pair, rng: random.Random, steps: int = 25) -> None:
    stops = pair.wrapped.stop_token_ids
    for number in range(steps):
        mask = pair.check()
        if mask is not None and number % 8 == 0:
            pair.check_every_token(mask, stops)
        pair.step(rng, mask)


def make_info(rng: random.Random) -> xgr.TokenizerInfo:
    tokens, size, stops = make_vocabulary(rng)
    return xgr.TokenizerInfo(tokens, xgr.VocabType.RAW, vocab_size=size, stop_token_ids=stops)


def options(rng: random.Random, info: xgr.TokenizerInfo) -> dict[str, object]:
    chosen: dict[str, object] = {"terminate_without_stop_token": rng.random() < 0.2}
    if rng.random() < 0.3:
        chosen["override_stop_tokens"] = rng.sample(range(info.vocab_size), rng.randint(1, 3))
    if rng.random() < 0.3:
        chosen["default_temperature"] = 0.25
    return chosen


@pytest.mark.filterwarnings("ignore::tokfold.FallbackWarning")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", GRAMMARS)
def test_walks_over_ebnf(name: str, seed: int) -> None:
    rng = random.Random(f"{name} {seed}")
    info = make_info(rng)
    compiled = txgr.GrammarCompiler(info).compile_grammar(GRAMMARS[name])
    is_refused = "ExcludeToken" in GRAMMARS[name] and not IS_028
    assert compiled.is_compressed != is_refused, compiled.fallback_reason
    plain = xgr.GrammarCompiler(info, cache_enabled=False).compile_grammar(GRAMMARS[name])
    for _ in range(3):
        chosen = options(rng, info)
        pair = Pair(
            xgr.GrammarMatcher(plain, **chosen),
            txgr.GrammarMatcher(compiled, **chosen),
            info.vocab_size,
        )
        walk(pair, rng)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_walks_over_schemas(name: str, seed: int) -> None:
    rng = random.Random(f"{name} {seed}")
    info = make_info(rng)
    schema, chosen = SCHEMAS[name]
    compiled = txgr.GrammarCompiler(info).compile_json_schema(schema, **chosen)
    assert compiled.is_compressed, compiled.fallback_reason
    plain = xgr.GrammarCompiler(info).compile_json_schema(schema, **chosen)
    pair = Pair(xgr.GrammarMatcher(plain), txgr.GrammarMatcher(compiled), info.vocab_size)
    walk(pair, rng, steps=40)


REFUSED = (
    ("recursive root beside Token",) if IS_028 else ("recursive root beside Token", "ExcludeToken")
)

TERMINALS = (
    *('"a"', '"b"', '"ab"', '"xa"', '"("', '")"', '"é"', '" "', '"\\0"', '"xb"', '"\\""', '"12"'),
    *("[a-c]", "[^a]", "[x-z]", "[é-ü]", "[0-9]", '[^"\\\\]', '""'),
    *('([^"]{0,2} "\\"")', '([^ab]{2,3} "b")', '([^a]{1,} "a")'),
)
QUANTIFIERS = ("", "", "", "", "*", "?", "+", "{1,3}", "{2,}")


def random_grammar(rng: random.Random, *, tokens: bool) -> str:
    names = ["root", *(f"r{number}" for number in range(1, rng.randint(1, 4)))]

    def atom(depth: int) -> str:
        choice = rng.random()
        if choice < 0.55 or depth > 2:
            return rng.choice(TERMINALS) + rng.choice(QUANTIFIERS)
        if choice < 0.8:
            # no quantifier here: XGrammar takes long over rules that repeat each other
            return rng.choice(names[1:] if tokens and names[1:] else names)
        if choice < 0.9 and tokens:
            ids = ", ".join(map(str, rng.sample(range(12), rng.randint(1, 2))))
            return f"{rng.choice(['Token', 'ExcludeToken'])}({ids})"
        return f"({alternatives(depth + 1)})"

    def alternatives(depth: int) -> str:
        return " | ".join(
            " ".join(atom(depth) for _ in range(rng.randint(1, 3)))
            for _ in range(rng.randint(1, 3))
        )

    return "\n".join(f"{name} ::= {alternatives(0)}" for name in names)


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize("seed", range(20 * len(SEEDS)))
def test_walks_over_random_grammars(seed: int, tokens: bool) -> None:
    rng = random.Random(f"{seed} {tokens}")
    info = make_info(rng)
    text = random_grammar(rng, tokens=tokens)
    grammar = xgr.Grammar.from_ebnf(text)
    compiler = txgr.GrammarCompiler(info, strict=True)
    try:
        compiled = compiler.compile_grammar(text)
    except UnsupportedGrammarError as error:
        assert error.construct in REFUSED  # noqa: PT017
        return
    plain = xgr.GrammarCompiler(info, cache_enabled=False).compile_grammar(grammar)
    for _ in range(2):
        pair = Pair(xgr.GrammarMatcher(plain), txgr.GrammarMatcher(compiled), info.vocab_size)
        # XGrammar masks ids that one of two ExcludeToken leaves out though the other takes them
        pair.masks_agree = not tokens
        walk(pair, rng, steps=12)


ATOMS = (
    *("a", "b", "x", "d", "é", "xb", "1", ".", "[ab]", "[^a]", "[à-ü]", r"\\d", r"\\w", r"\\s"),
    *(r"[^\\s]", r"\\.", r"\\u00e9", r"[a-cx]", r"[^\"]", "€", "<", r"\\\"", "[^\\\\s\\\\S]"),
)
TIMES = ("", "", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}", "{130,200}", "{2,}", "*?")


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    """A regular expression, as it stands in grammar text."""

    def piece() -> str:
        if depth < 2 and rng.random() < 0.3:
            opening = rng.choice(["(", "(", "(?:"])
            return opening + random_pattern(rng, depth + 1) + ")" + rng.choice(TIMES)
        return rng.choice(ATOMS) + rng.choice(TIMES)

    return "|".join(
        "".join(piece() for _ in range(rng.randint(1, 3))) for _ in range(rng.randint(1, 2))
    )


@pytest.mark.parametrize("seed", range(20 * len(SEEDS)))
def test_walks_over_random_patterns(seed: int) -> None:
    rng = random.Random(f"pattern {seed}")
    info = make_info(rng)
    patterns = []
    for _ in range(2):
        pattern = random_pattern(rng)
        if rng.random() < 0.3:
            pattern = rng.choice(["^", ""]) + f"({pattern})" + rng.choice(["$", ""])
        patterns.append(f'Regex("{pattern}"{rng.choice(["", ", json_string=true"])})')
    shape = rng.choice(['{} "\\""? {}', "({} | {})*", "{} ({} root)?", '"a" {} | "x" {} "c"'])
    text = "root ::= " + shape.format(*patterns)
    plain_compiler = xgr.GrammarCompiler(info, cache_enabled=False)
    try:
        plain = plain_compiler.compile_grammar(text)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            txgr.GrammarCompiler(info).compile_grammar(text)
        return
    try:
        compiled = txgr.GrammarCompiler(info, strict=True).compile_grammar(text)
    except UnsupportedGrammarError as error:
        assert "large repetition" in error.construct  # noqa: PT017
        return
    for _ in range(2):
        pair = Pair(xgr.GrammarMatcher(plain), txgr.GrammarMatcher(compiled), info.vocab_size)
        walk(pair, rng, steps=12)
