"""Grammars with a text each on which cost models are trained: synthetic, so that none is held out.

Each family is a way in which grammars cost something: recursion, nesting, chains of rules, keywords
beside names, ambiguity, wide choices, free text. Texts come from a generator with a fixed seed, and
every one is a string of its grammar.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tokfold.laboratory.cost_model.programs import WORDS, Made, programs, scripts

__all__ = ["TrainingCase", "training_cases"]


@dataclass(frozen=True)
class TrainingCase:
    """A grammar and a string of it."""

    name: str
    grammar: str
    text: bytes


def training_cases(seed: int = 0) -> list[TrainingCase]:
    """All families, some in several sizes; the same for the same seed."""
    cases = []
    for maker in _FAMILIES:
        name = maker.__name__.lstrip("_")
        # A generator each, so that a new family leaves the others' texts as they are.
        for variant, (grammar, text) in enumerate(maker(Random(f"{seed} {name}"))):
            cases.append(TrainingCase(f"{name}-{variant}", grammar, text.encode()))
    return cases


def _choice(words: list[str]) -> str:
    return " | ".join(f'"{word}"' for word in words)


def _recursive_lists(random: Random) -> Made:
    """Lists by left recursion, right recursion and a loop."""
    items = " ".join(random.choice(WORDS) for _ in range(60)).replace(" ", ", ")
    numbers = ";".join(str(random.randrange(10_000)) for _ in range(60))
    return [
        ('root ::= list\nlist ::= list ", " word | word\nword ::= [a-z]+\n', items),
        ('root ::= list\nlist ::= word ", " list | word\nword ::= [a-z]+\n', items),
        ('root ::= number (";" number)*\nnumber ::= [0-9]+\n', numbers),
    ]


def _nested_data(random: Random) -> Made:
    """Objects and lists, written tight and with white space."""

    def value(depth: int, gap: str) -> str:
        kind = random.randrange(5 if depth else 3)
        if kind == 0:
            return f'"{" ".join(random.choice(WORDS) for _ in range(random.randrange(4)))}"'
        if kind == 1:
            return str(random.randrange(1_000))
        if kind == 2:
            return random.choice(["true", "false", "null"])
        parts = [value(depth - 1, gap) for _ in range(random.randrange(1, 4))]
        if kind == 3:
            return f"[{gap}{f',{gap}'.join(parts)}]"
        keyed = [f'"{random.choice(WORDS)}":{gap}{part}' for part in parts]
        return "{" + gap + f",{gap}".join(keyed) + "}"

    tight = (
        'root ::= value\nvalue ::= object | list | string | number | "true" | "false" | "null"\n'
        'object ::= "{" (pair ("," pair)*)? "}"\npair ::= string ":" value\n'
        'list ::= "[" (value ("," value)*)? "]"\nstring ::= "\\"" [^"\\\\]* "\\""\n'
        "number ::= [0-9]+\n"
    )
    loose = (
        'root ::= value\nvalue ::= object | list | string | number | "true" | "false" | "null"\n'
        'object ::= "{" ws (pair ("," ws pair)*)? "}"\npair ::= string ":" ws value\n'
        'list ::= "[" ws (value ("," ws value)*)? "]"\nstring ::= "\\"" char* "\\""\n'
        'char ::= [^"\\\\]\nnumber ::= "-"? [0-9]+ ("." [0-9]+)?\nws ::= [ \\n]*\n'
    )
    many = ",".join(value(3, "") for _ in range(40))
    spaced = ",\n ".join(value(3, " ") for _ in range(40))
    return [(tight, f"[{many}]"), (loose, f"[\n {spaced}]")]


def _expression_chains(random: Random) -> Made:
    """Operators by levels of precedence, few and many, and without levels."""

    def text(count: int, operators: str) -> str:
        parts = [random.choice("xyzab") if random.random() < 0.6 else f"({random.choice('xy')}+1)"]
        for _ in range(count):
            operand = str(random.randrange(100)) if random.random() < 0.5 else random.choice("xyz")
            parts += [random.choice(operators), operand]
        return "".join(parts)

    def chain(operators: str) -> str:
        rules = ["root ::= level0"]
        for depth, operator in enumerate(operators):
            rules.append(f'level{depth} ::= level{depth + 1} ("{operator}" level{depth + 1})*')
        rules.append(f'level{len(operators)} ::= "(" level0 ")" | [a-z] | [0-9]+')
        return "\n".join(rules) + "\n"

    flat = 'root ::= sum\nsum ::= sum [+*] sum | "(" sum ")" | [a-z] | [0-9]+\n'
    left = (
        'root ::= sum\nsum ::= sum "+" product | product\nproduct ::= product "*" atom | atom\n'
        'atom ::= "(" sum ")" | [a-z] | [0-9]+\n'
    )
    return [
        (chain("+*"), text(60, "+*")),
        (chain("|&=<+*%^"), text(60, "|&=<+*%^")),
        (left, text(60, "+*")),
        (flat, text(25, "+*")),
    ]


def _keyword_lists(random: Random) -> Made:
    """Statements of keywords beside names, and choices among many words."""
    keywords = ["let", "set", "print", "return", "if", "while", "import", "from"]

    def statement() -> str:
        name, other = random.choice(WORDS), random.choice(WORDS)
        forms = [
            f"let {name} = {other}",
            f"print {name}",
            f"return {name}",
            f"import {name} from {other}",
        ]
        return random.choice(forms)

    statements = (
        'root ::= (statement "\\n")+\nstatement ::= "let " name " = " name | "print " name | '
        '"return " name | "import " name " from " name | name\nname ::= [a-z] [a-z0-9_]*\n'
    )
    choices = 'root ::= word (" " word)*\nword ::= ' + " | ".join(f'"{w}"' for w in WORDS) + "\n"
    apart = (
        'root ::= (line "\\n")+\nline ::= kw " " name ("(" args ")")?\nargs ::= name ("," name)*\n'
        f"kw ::= {_choice(keywords)}\nname ::= [A-Za-z_] [A-Za-z0-9_]*\n"
    )
    calls = [
        f"{random.choice(keywords)} {random.choice(WORDS)}({random.choice(WORDS)})"
        for _ in range(30)
    ]
    return [
        (statements, "".join(f"{statement()}\n" for _ in range(30))),
        (choices, " ".join(random.choice(WORDS) for _ in range(80))),
        (apart, "".join(f"{call}\n" for call in calls)),
    ]


def _ambiguous_concatenations(random: Random) -> Made:
    """One text read in many ways."""
    letters = "".join(random.choice("abc") for _ in range(40))
    words = " ".join(random.choice(WORDS) for _ in range(20))
    return [
        ("root ::= s\ns ::= s s | [a-c]\n", letters),
        ("root ::= s\ns ::= s s s | s s | [a-c]\n", letters[:25]),
        (
            'root ::= p\np ::= p " " p | w\nw ::= n | v | a\n'
            "n ::= [a-z]+\nv ::= [a-z]+\na ::= [a-z]+\n",
            words,
        ),
    ]


def _wide_alternations(random: Random) -> Made:
    """Many rules that may begin at one place."""
    count = 40
    tags = [f"{random.choice(WORDS)}{i}" for i in range(count)]
    rules = [
        f'root ::= item ("\\n" item)*\nitem ::= {" | ".join(f"item{i}" for i in range(count))}'
    ]
    rules += [f'item{i} ::= "<{tag}" " " value{i % 4} ">"' for i, tag in enumerate(tags)]
    rules += [
        "value0 ::= [0-9]+",
        "value1 ::= [a-z]+",
        'value2 ::= "\\"" [^"]* "\\""',
        "value3 ::= [^>]+",
    ]
    lines = []
    for _ in range(30):
        i = random.randrange(count)
        word = random.choice(WORDS)
        value = [str(random.randrange(999)), word, f'"{word} {word}"', f"{word} {word}"][i % 4]
        lines.append(f"<{tags[i]} {value}>")
    return [("\n".join(rules) + "\n", "\n".join(lines))]


def _free_text(random: Random) -> Made:
    """Strings, comments and prose, where most tokens are allowed."""

    def prose(count: int) -> str:
        return " ".join(random.choice(WORDS) for _ in range(count))

    program = (
        'root ::= item*\nitem ::= comment | block | call | " " | "\\n"\n'
        'comment ::= "//" [^\\n]* "\\n"\nblock ::= "/*" ([^*] | "*"+ [^*/])* "*"+ "/"\n'
        'call ::= name "(" (string ("," string)*)? ");"\nname ::= [a-z]+\n'
        'string ::= "\\"" ([^"\\\\\\n] | "\\\\" [nt"])* "\\""\n'
    )
    text = "".join(
        f'// {prose(5)}\n{random.choice(WORDS)}("{prose(3)}","{prose(2)}");\n/* {prose(4)} */\n'
        for _ in range(8)
    )
    sentences = 'root ::= sentence (" " sentence)*\nsentence ::= [A-Z] [a-z ,]* "."\n'
    bounded = 'root ::= line{1,40}\nline ::= [a-z ]{1,60} "\\n"\n'
    return [
        (program, text),
        (sentences, " ".join(f"{prose(8).capitalize()}." for _ in range(8))),
        (bounded, "".join(f"{prose(6)[:60]}\n" for _ in range(12))),
    ]


def _deep_nesting(random: Random) -> Made:
    """Brackets of several kinds, and blocks within blocks."""
    opened: list[str] = []
    text = ""
    pairs = {"(": ")", "[": "]", "{": "}"}
    for _ in range(150):
        if opened and random.random() < 0.45:
            text += pairs[opened.pop()]
        else:
            opened.append(random.choice("([{"))
            text += opened[-1]
    text += "".join(pairs[bracket] for bracket in reversed(opened))
    brackets = 'root ::= b*\nb ::= "(" b* ")" | "[" b* "]" | "{" b* "}"\n'
    marks = (
        'root ::= node\nnode ::= "<" name ">" (node | text)* "</" name ">"\n'
        "name ::= [a-z]+\ntext ::= [^<]\n"
    )

    def node(depth: int) -> str:
        name = random.choice(WORDS)
        inner = "".join(node(depth - 1) for _ in range(2)) if depth else random.choice(WORDS)
        return f"<{name}>{inner}</{name}>"

    return [(brackets, text), (marks, node(4))]


def _delegations(random: Random) -> Made:
    """Rules that only call the next one."""
    depth = 30
    rules = ['root ::= (d0 " ")+']
    rules += [f"d{i} ::= d{i + 1}" for i in range(depth)]
    rules += [f'd{depth} ::= [a-z]+ | "(" d0 ")"']
    text = " ".join(
        random.choice(WORDS) if random.random() < 0.7 else f"({random.choice(WORDS)})"
        for _ in range(40)
    )
    return [("\n".join(rules) + "\n", text + " ")]


def _optional_runs(random: Random) -> Made:
    """Parts that may all be missing: dates, numbers, signatures."""
    grammar = (
        'root ::= entry ("\\n" entry)*\nentry ::= date? " "? time? " "? level? " "? message?\n'
        'date ::= [0-9]{4} "-" [0-9]{2} "-" [0-9]{2}\ntime ::= [0-9]{2} ":" [0-9]{2}\n'
        'level ::= "INFO" | "WARN" | "ERROR"\nmessage ::= [a-z] [a-z ]{0,200}\n'
    )
    lines = []
    for _ in range(25):
        when = f"20{random.randrange(10, 30)}-0{random.randrange(1, 9)}-1{random.randrange(9)}"
        message = " ".join(random.choice(WORDS) for _ in range(3))
        lines.append(
            f"{when} 1{random.randrange(9)}:30 {random.choice(['INFO', 'WARN'])} {message}"
        )
    return [(grammar, "\n".join(lines))]


_FAMILIES: tuple[Callable[[Random], Made], ...] = (
    _recursive_lists,
    _nested_data,
    _expression_chains,
    _keyword_lists,
    _ambiguous_concatenations,
    _wide_alternations,
    _free_text,
    _deep_nesting,
    _delegations,
    _optional_runs,
    programs,
    scripts,
)
