"""What `tokfold optimize` gains: times and masks before and after, and forms side by side.

    python benches/python/bench_optimize.py --tokenizer path/to/model

Four families that XGrammar is slow on, before and after; the real grammars, before and after, for
XGrammar and for our engine; equivalent forms of one language on our engine, none optimized; and
how long it takes to optimize 500 rules. Forms are measured in turns and the least time of each step
counts: a step is a mask and the reading of a token. XGrammar's masks before and after are compared
bit for bit along the text, and where they differ our engine's mask is the judge. One thread.
"""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import bench_common as common
import numpy as np
import numpy.typing as npt
import tokfold
from tokfold import Grammar, Vocabulary
from tokfold.cli.render import number, seconds
from tokfold.laboratory.instruments import make_engine
from tokfold.laboratory.optimize import Optimized, Timing, optimize, time_forms

Result = common.Result


class Sample(NamedTuple):
    """A grammar with a text of it."""

    name: str
    grammar: str
    text: bytes
    bar: float
    """How many times faster at least."""


def families() -> Iterator[Sample]:
    """What XGrammar is slow on."""
    operators = (b"12+34*(5-6)*7+" * 60) + b"1+2*3-4"
    yield Sample(
        "ambiguous operators",
        'root ::= e\ne ::= e "+" e | e "*" e | e "-" e | "(" e ")" | n\nn ::= [0-9]+\n',
        operators,
        20,
    )
    yield Sample("chain of 10 levels", chain("star"), CHAIN_TEXT, 3)
    delegations = "".join(f"d{i} ::= d{i + 1}\n" for i in range(49))
    value = '"[" (v ("," v)*)? "]" | [0-9]+ | "\\"" [^"]* "\\""'
    nested = b'[1,[22,"abc def ghi"],["x",[3,[4,5,[6]]]],' * 6 + b"1" + b"]" * 6
    yield Sample(
        "50 delegations", f"root ::= v\nv ::= d0\n{delegations}d49 ::= {value}\n", nested, 8
    )
    yield Sample("left-recursive JSON", JSON_LEFT, JSON_TEXT, 4)


OPERATORS = ["||", "&&", "|", "^", "&", "==", "<", "<<", "+", "*"]
CHAIN_TEXT = b"(a+b)*c<<2||12&&(x==y|z^w&q)<3+((a))*b+" * 5 + b"a"


def chain(kind: str) -> str:
    """Ten levels of operators, by repetition or by recursion; or one level."""
    atom = '[0-9]+ | "(" e0 ")" | [a-z]+\n'
    if kind == "flat":
        every = " | ".join(f'"{operator}"' for operator in OPERATORS)
        return f"root ::= e0\ne0 ::= a (({every}) a)*\na ::= {atom}"
    shapes = {
        "star": 'e{0} ::= e{1} ("{2}" e{1})*\n',
        "left": 'e{0} ::= e{0} "{2}" e{1} | e{1}\n',
        "right": 'e{0} ::= e{1} "{2}" e{0} | e{1}\n',
    }
    levels = (shapes[kind].format(i, i + 1, op) for i, op in enumerate(OPERATORS))
    return "root ::= e0\n" + "".join(levels) + "e10 ::= " + atom


JSON_LEFT = r"""root ::= ws value ws
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws "}" | "{" ws members ws "}"
members ::= members ws "," ws member | member
member ::= string ws ":" ws value
array ::= "[" ws "]" | "[" ws elements ws "]"
elements ::= elements ws "," ws value | value
string ::= "\"" chars "\""
chars ::= chars char | ""
char ::= [^"\\\x00-\x1f] | "\\" ["\\/bfnrt] | "\\u" hex hex hex hex
hex ::= [0-9a-fA-F]
number ::= int frac exp
int ::= "-"? ("0" | [1-9] | onenine digits)
onenine ::= [1-9]
digits ::= digits [0-9] | [0-9]
frac ::= "" | "." digits
exp ::= "" | [eE] [-+]? digits
ws ::= ws [ \t\n\r] | ""
"""
JSON_TEXT = (
    b'{"name": "Alice Smith", "age": 42, "tags": ["a", "bcd", "a longer string of text here"], '
    b'"nested": {"x": [1, 2.5, -3e10, true, null], "y": {"deep": "value"}}}'
)


def equivalent() -> Iterator[tuple[str, dict[str, str], bytes]]:
    """Families of grammars of one language each, and a text."""
    item = '[0-9]+ | "(" l ")"\n'
    yield (
        "left or right recursion",
        {
            "left": f'root ::= l\nl ::= l "," i | i\ni ::= {item}',
            "right": f'root ::= l\nl ::= i "," l | i\ni ::= {item}',
            "repetition": f'root ::= l\nl ::= i ("," i)*\ni ::= {item}',
        },
        b"1,22,(3,44),((5,6),7),8," * 20 + b"9",
    )
    delegations = "".join(f"d{i} ::= d{i + 1}\n" for i in range(49))
    value = '"[" (v ("," v)*)? "]" | [0-9]+\n'
    yield (
        "delegation",
        {
            "direct": f"root ::= v\nv ::= {value}",
            "50 rules": f"root ::= v\nv ::= d0\n{delegations}d49 ::= {value}",
        },
        b"[1,[22,333],[[],[3,[4,5,[6]]]]," * 10 + b"1" + b"]" * 10,
    )
    yield (
        "concatenation",
        {
            "s s": 'root ::= s\ns ::= s s | "a" | "b"\n',
            "s x": 'root ::= s\ns ::= s x | x\nx ::= "a" | "b"\n',
            "x s": 'root ::= s\ns ::= x s | x\nx ::= "a" | "b"\n',
            "star": "root ::= [ab] [ab]*\n",
        },
        b"abba" * 60,
    )
    yield (
        "precedence",
        {kind: chain(kind) for kind in ("star", "left", "right", "flat")},
        CHAIN_TEXT,
    )
    line = 'w ::= [a-z]+ | "(" root ")"\n'
    yield (
        "factoring",
        {
            "apart": 'root ::= s+\ns ::= w "=" w ";" | w "+=" w ";" | w "(" w ")" ";" | w ";"\n'
            + line,
            "factored": f'root ::= s+\ns ::= w ("=" w | "+=" w | "(" w ")")? ";"\n{line}',
        },
        b"abc=def;ghi+=jkl;mno(pq);rst;" * 12,
    )


def main() -> None:
    """Measure and print."""
    parser = common.parser(__doc__, writes=True)
    parser.add_argument("--every", type=int, default=16, help="use each so-manyth token")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=12.0, help="for one grammar and engine")
    parser.add_argument(
        "--parts", nargs="+", default=["families", "grammars", "forms", "size"], metavar="PART"
    )
    names = sorted(p.stem for p in (common.ROOT / "grammars").glob("*/*.gbnf"))
    parser.set_defaults(grammars=names)
    options = parser.parse_args()
    report: Result = {
        "machine": common.machine(),
        "versions": common.versions("xgrammar", "llguidance"),
        "date": datetime.date.today().isoformat(),
        "every": options.every,
    }
    sheets: list[common.Sheet] = []
    for label, whole in common.tokenizers(options).items():
        bench = Bench(options, sampled(whole, options.every))
        for part in options.parts:
            report[f"{part}, {label}"], sheet = getattr(bench, part)()
            sheets.append(sheet._replace(title=f"{sheet.title}, {label}"))
    notes = [f"1 of {options.every} tokens of each vocabulary, and all bytes"]
    common.publish(options, "optimize", report, sheets, notes)


def sampled(vocabulary: Vocabulary, every: int) -> Vocabulary:
    """Each so-manyth token, all bytes, and the first stop token."""
    stop = set(vocabulary.stop_token_ids) | set(vocabulary.special_token_ids)
    kept = dict.fromkeys(bytes((byte,)) for byte in range(256))
    texts = [bytes(t) for i, t in enumerate(vocabulary.token_bytes) if i not in stop and t]
    kept |= dict.fromkeys(texts[::every])
    return Vocabulary([*kept, b"</s>"], stop_token_ids=[len(kept)])


class Bench:
    """One vocabulary."""

    def __init__(self, options: argparse.Namespace, vocabulary: Vocabulary) -> None:
        self.options, self.vocabulary = options, vocabulary

    def timed(self, pair: list[tuple[str, Grammar]], engine: str, text: bytes) -> list[Timing]:
        """Forms in turns."""
        options = self.options
        tokens = self.vocabulary.encode_greedy(text)[:1000]
        return time_forms(
            pair, engine, self.vocabulary, tokens, rounds=options.rounds, seconds=options.seconds
        )

    def families(self) -> tuple[list[Result], common.Sheet]:
        """XGrammar before and after."""
        rows = []
        for sample in families():
            found = optimize(Grammar.from_ebnf(sample.grammar), "xgrammar")
            row = self._pair(found, "xgrammar", sample.text)
            masks = self.masks(found, sample.text)
            rows.append({"name": sample.name, "bar": sample.bar, **row, **masks})
        columns = ["family", ">steps", ">before", ">after", ">faster", ">bar", ">masks equal"]
        columns += [">wrong before", ">after", "equality"]
        cells = [
            [
                row["name"],
                number(row["steps"]),
                seconds(row["before"]),
                seconds(row["after"]),
                f"{row['before'] / row['after']:.1f}",
                f"{row['bar']:g}",
                f"{row['equal']} of {row['masks']}",
                number(row["wrong_before"]),
                number(row["wrong_after"]),
                row["equality"],
            ]
            for row in rows
        ]
        return rows, common.Sheet("XGrammar, families, before and after", columns, cells)

    def grammars(self) -> tuple[list[Result], common.Sheet]:
        """Real grammars, for either engine."""
        rows, cells = [], []
        for name in self.options.grammars:
            text = common.grammar_text(self.options.grammar_dir, name)
            sample = common.sample_text(self.options.grammar_dir, name)
            for engine in ("xgrammar", "own"):
                began = time.perf_counter()
                found = optimize(Grammar.from_ebnf(text), engine)
                spent = time.perf_counter() - began
                row = self._pair(found, engine, sample)
                rows.append({"name": name, "engine": engine, "seconds": spent, **row})
                cells.append(
                    [
                        name,
                        engine,
                        seconds(spent),
                        number(row["steps"]),
                        seconds(row["before"]),
                        seconds(row["after"]),
                        f"{row['after'] / row['before']:.2f}",
                        f"{row['compile'][0]:.2f} s",
                        f"{row['compile'][1]:.2f} s",
                        row["equality"],
                    ]
                )
        columns = ["grammar", "engine", ">optimize", ">steps", ">before", ">after", ">after/before"]
        columns += [">compile", ">after", "equality"]
        return rows, common.Sheet("Real grammars, before and after", columns, cells)

    def _pair(self, found: Optimized, engine: str, text: bytes) -> Result:
        one, other = self.timed(
            [("before", found.original), ("after", found.grammar)], engine, text
        )
        verdict = found.certificate
        return {
            "steps": len(one.step_us),
            "before": one.mean_us / 1e6,
            "after": other.mean_us / 1e6,
            "compile": [one.compile_seconds, other.compile_seconds],
            "equality": verdict.kind if verdict else "not compared",
        }

    def masks(self, found: Optimized, text: bytes, most: int = 150) -> Result:
        """XGrammar's masks along a text, our engine being the judge where they differ."""
        walks = [
            make_engine("xgrammar", grammar, self.vocabulary).begin(cold=True)
            for grammar in (found.original, found.grammar)
        ]
        judge = tokfold.Matcher(tokfold.compile(found.original, self.vocabulary, classes="never"))
        row = np.zeros_like(walks[0].row)
        result = {"masks": 0, "equal": 0, "wrong_before": 0, "wrong_after": 0}
        for token in self.vocabulary.encode_greedy(text)[:most]:
            for walk in walks:
                walk.fill()
            judge.fill_bitmask(row)
            before, after = (self._bits(walk.row) for walk in walks)
            right = self._bits(row)
            result["masks"] += 1
            result["equal"] += bool((before == after).all())
            result["wrong_before"] += int((before != right).sum())
            result["wrong_after"] += int((after != right).sum())
            for walk in walks:
                if not walk.accept(token):
                    raise SystemExit("error: XGrammar refuses the text")
            judge.accept_token(token)
        return result

    def _bits(self, row: npt.NDArray[np.int32]) -> Any:
        return np.unpackbits(row.view(np.uint8), bitorder="little")[: len(self.vocabulary)]

    def forms(self) -> tuple[list[Result], common.Sheet]:
        """Equivalent forms on our engine, as they are."""
        rows, cells = [], []
        for family, texts, text in equivalent():
            pairs = [(name, Grammar.from_ebnf(grammar)) for name, grammar in texts.items()]
            timings = self.timed(pairs, "own", text)
            least = min(timing.mean_us for timing in timings)
            for timing, (name, grammar) in zip(timings, pairs, strict=True):
                counts = self._work(grammar, text)
                median = float(np.median(timing.step_us))
                row = {
                    "family": family,
                    "form": name,
                    "compile": timing.compile_seconds,
                    "mean": timing.mean_us / 1e6,
                    "median": median / 1e6,
                    "ratio": timing.mean_us / least,
                    **counts,
                }
                rows.append(row)
                cells.append(
                    [
                        family,
                        name,
                        seconds(timing.compile_seconds),
                        seconds(timing.mean_us / 1e6),
                        f"{median:.2f} µs",
                        f"{row['ratio']:.2f}",
                        number(counts["work"]),
                        number(counts["mask"]),
                    ]
                )
        columns = [
            "family",
            "form",
            ">compile",
            ">step",
            ">median",
            ">to least",
            ">work",
            ">visits",
        ]
        return rows, common.Sheet("Equivalent forms on our engine, a cold walk", columns, cells)

    def _work(self, grammar: Grammar, text: bytes) -> Result:
        engine = make_engine("own", grammar, self.vocabulary)
        walk = engine.begin(cold=True, counting=True)
        work = visits = 0
        for token in self.vocabulary.encode_greedy(text)[:1000]:
            walk.fill()
            visits += walk.counters()["mask.sets_visited"]
            walk.accept(token)
            work += walk.counters()["step.work"]
        return {"work": work, "mask": visits}

    def size(self) -> tuple[list[Result], common.Sheet]:
        """500 rules."""
        rows, cells = [], []
        for engine in ("own", "xgrammar", "llguidance"):
            grammar = Grammar.from_ebnf(many_rules(500))
            began = time.perf_counter()
            found = optimize(grammar, engine, check=_unchecked)
            alone = time.perf_counter() - began
            began = time.perf_counter()
            found = optimize(grammar, engine)
            whole = time.perf_counter() - began
            verdict = str(found.certificate)
            rows.append({"engine": engine, "search": alone, "all": whole, "verdict": verdict})
            cells.append([engine, seconds(alone), seconds(whole), verdict[:60]])
        columns = ["engine", ">search", ">with equality", "equality"]
        return rows, common.Sheet("Optimizing 500 rules", columns, cells)


def _unchecked(left: Grammar, right: Grammar) -> Any:
    return tokfold.laboratory.equivalence.Verdict("bounded", None, None, False, 0, 0)


def many_rules(count: int) -> str:
    """A grammar of statements, chains, lists and words, all reached from the root."""
    rules = ['root ::= (s0 ";")*']
    for i in range(count // 6):
        following = f"s{i + 1}" if i + 1 < count // 6 else "w0"
        rules += [
            f's{i} ::= "k{i}" e{i} | l{i} ":" w{i} | {following}',
            f'e{i} ::= e{i} "+" e{i} | e{i} "*" e{i} | "(" e{i} ")" | w{i}',
            f'l{i} ::= l{i} "," w{i} | w{i}',
            f"w{i} ::= [a-z] d{i} | n{i}",
            f'd{i} ::= [a-z0-9]* "_{i % 7}"?',
            f'n{i} ::= [0-9]+ ("." [0-9]+)?',
        ]
    return "\n".join(rules) + "\n"


if __name__ == "__main__":
    main()
