"""Small programming languages with a program each: the largest of the training grammars."""

from __future__ import annotations

from random import Random

__all__ = ["WORDS", "Made", "programs", "scripts"]

WORDS = """
    time year people way day man thing woman life child world school state family student group
    country problem hand part place case week company system program question work government
    number night point home water room mother area money story fact month lot right study book
    eye job word business issue side kind head house service friend father power hour game line
""".split()  # noqa: SIM905 - as words it reads

Made = list[tuple[str, str]]
"""Grammars with a text each."""


def programs(random: Random) -> Made:
    """Small programming languages: declarations, statements, levels of operators, gaps.

    In one a gap is white space, in the other comments too, so that nearly every token may begin at
    many places; one has levels of operators, the other is ambiguous.
    """

    def expression(depth: int) -> str:
        kind = random.randrange(6 if depth else 3)
        if kind == 0:
            return random.choice(WORDS)
        if kind == 1:
            return str(random.randrange(1_000))
        if kind == 2:
            return f"'{random.choice(WORDS)} {random.choice(WORDS)}'"
        inner = expression(depth - 1)
        if kind == 3:
            return f"{random.choice(WORDS)}({inner}, {expression(depth - 1)})"
        if kind == 4:
            return f"({inner} {random.choice(['+', '*', '<', 'and'])} {expression(depth - 1)})"
        return f"{inner} {random.choice(['+', '-', '==', 'or'])} {expression(depth - 1)}"

    def statement(depth: int, indent: str) -> str:
        kind = random.randrange(6 if depth else 4)
        if kind == 0:
            return f"{indent}var {random.choice(WORDS)}: int = {expression(2)};\n"
        if kind == 1:
            return f"{indent}{random.choice(WORDS)} = {expression(2)};\n"
        if kind == 2:
            return f"{indent}return {expression(1)};\n"
        if kind == 3:
            return f"{indent}{random.choice(WORDS)}({expression(1)});\n"
        head = "if" if kind == 4 else "while"
        inner = "".join(statement(depth - 1, indent + "  ") for _ in range(2))
        return f"{indent}{head} ({expression(1)}) {{\n{inner}{indent}}}\n"

    def function() -> str:
        body = "".join(statement(2, "  ") for _ in range(4))
        return f"fun {random.choice(WORDS)}(a: int, b: [text]): int {{\n{body}}}\n"

    def grammar(gap: str, operators: list[str]) -> str:
        rules = [
            "root ::= gap (function gap)*",
            'function ::= "fun" must name gap "(" gap (params gap)? ")" gap ":" gap type gap block',
            'params ::= param (gap "," gap param)*',
            'param ::= name gap ":" gap type',
            'type ::= "int" | "text" | "bool" | "[" gap type gap "]" | name',
            'block ::= "{" gap (statement gap)* "}"',
            'statement ::= variable | assign | return | branch | loop | call gap ";" | block',
            'variable ::= "var" must name gap (":" gap type gap)? ("=" gap expr gap)? ";"',
            'assign ::= name gap "=" gap expr gap ";"',
            'return ::= "return" (must expr)? gap ";"',
            'branch ::= "if" gap "(" gap expr gap ")" gap block (gap "else" gap block)?',
            'loop ::= "while" gap "(" gap expr gap ")" gap block',
            'call ::= name gap "(" gap (expr (gap "," gap expr)* gap)? ")"',
            *operators,
            'atom ::= call | name | number | string | "(" gap expr gap ")" | list',
            'list ::= "[" gap (expr (gap "," gap expr)* gap)? "]"',
            "name ::= [A-Za-z_] [A-Za-z0-9_]*",
            'number ::= [0-9]+ ("." [0-9]+)? ([eE] [+-]? [0-9]+)?',
            'string ::= "\'" ([^\'\\\\\\n] | "\\\\" [^\\n])* "\'"',
            gap,
        ]
        return "\n".join(rules) + "\n"

    levels = [
        "expr ::= or",
        'or ::= and (gap "or" must and)*',
        'and ::= equal (gap "and" must equal)*',
        'equal ::= less (gap ("==" | "!=") gap less)*',
        'less ::= sum (gap ("<" | ">" | "<=" | ">=") gap sum)*',
        "sum ::= product (gap [+-] gap product)*",
        "product ::= unary (gap [*/%] gap unary)*",
        'unary ::= "not" must unary | "-" gap unary | atom',
    ]
    ambiguous = [
        "expr ::= expr gap binary gap expr | unary gap expr | atom",
        'binary ::= "+" | "-" | "*" | "/" | "==" | "!=" | "<" | ">" | "and" | "or"',
        'unary ::= "-" | "not"',
    ]
    white = "gap ::= [ \\n]*\nmust ::= [ \\n]+"
    comments = (
        "gap ::= ([ \\n] | comment)*\nmust ::= ([ \\n] | comment)+\n"
        'comment ::= "#" [^\\n]* "\\n" | "/*" ([^*] | "*"+ [^*/])* "*"+ "/"'
    )
    texts = ["".join(function() for _ in range(4)) for _ in range(4)]
    return [
        (grammar(white, levels), texts[0]),
        (grammar(comments, levels), f"# {random.choice(WORDS)}\n{texts[1]}"),
        (grammar(white, ambiguous), texts[2]),
        (grammar(comments, ambiguous), f"/* {random.choice(WORDS)} */ {texts[3]}"),
    ]


def scripts(random: Random) -> Made:
    """Scripts whose statements begin alike: where one goes on, many rules are open at once.

    White space, or white space and comments, ends each word and mark, as a hand-written grammar
    without a lexer has it.
    """
    levels = ["either", "both", "inverse", "compare", "bits", "shift", "sum", "product", "power"]
    marks = ['"or"', '"and"', '"xor"', '"=="', '"|"', '">>"', '"+"', '"*"', '"**"']

    def grammar(gap: str) -> str:
        rules = [
            "root ::= gap line*",
            "line ::= simple (mark simple)* end | branch",
            'mark ::= ";" gap',
            'end ::= "." gap',
            "simple ::= exprs | assign | annotate | shorten | remove",
            'assign ::= exprs ("=" gap exprs)* "=" gap exprs',
            'annotate ::= expr ":" gap expr ("=" gap exprs)?',
            'shorten ::= exprs ("+" | "-" | "*") "=" gap exprs',
            'remove ::= "del" gap exprs | "assert" gap expr ("," gap expr)?',
            'branch ::= expr "?" gap "{" gap line* "}" gap ("else" gap "{" gap line* "}" gap)?',
            'exprs ::= expr ("," gap expr)* ("," gap)?',
            'expr ::= either ("if" gap either "else" gap expr)? | name ":=" gap expr',
        ]
        for level, below, mark in zip(levels, [*levels[1:], "prefix"], marks, strict=True):
            rules.append(f"{level} ::= {below} ({mark} gap {below})*")
        rules += [
            'prefix ::= "not" gap prefix | [+-] gap prefix | postfix',
            'postfix ::= atom (member | "(" gap args? ")" gap | "[" gap exprs "]" gap)*',
            'member ::= "->" gap name',
            'args ::= arg ("," gap arg)*',
            'arg ::= expr | name "=" gap expr | "*" gap expr',
            'atom ::= name | number | string | "(" gap exprs? ")" gap | "[" gap exprs? "]" gap',
            "name ::= [A-Za-z_] [A-Za-z0-9_]* gap",
            'number ::= [0-9]+ ("." [0-9]+)? gap',
            'string ::= "\\"" [^"\\n]* "\\"" gap',
            gap,
        ]
        return "\n".join(rules) + "\n"

    def term() -> str:
        forms = [
            random.choice(WORDS),
            str(random.randrange(100)),
            f'"{random.choice(WORDS)} {random.choice(WORDS)}"',
            f"{random.choice(WORDS)}({random.choice(WORDS)}, {random.choice(WORDS)} = 1)",
            f"{random.choice(WORDS)}->{random.choice(WORDS)}[{random.randrange(9)}]",
            f"({random.choice(WORDS)} + {random.choice(WORDS)} * 2)",
        ]
        return random.choice(forms)

    def line() -> str:
        name = random.choice(WORDS)
        forms = [
            f"{name} = {term()} + {term()}",
            f"{name}, {random.choice(WORDS)} = {term()}, {term()}",
            f"{name} += {term()}",
            f"assert {term()} == {term()}",
            f"{name}({term()}, {term()})",
        ]
        return random.choice(forms)

    white = "gap ::= [ \\n]*"
    comments = 'gap ::= ([ \\n] | "#" [^\\n]* "\\n")*'
    texts = []
    for _ in range(2):
        lines = [f"{line()}.\n" for _ in range(20)]
        lines.insert(8, f"{term()} ? {{\n  {line()}; {line()}.\n}} else {{\n  {line()}.\n}}\n")
        texts.append("".join(lines))
    return [(grammar(white), texts[0]), (grammar(comments), f"# {WORDS[0]}\n{texts[1]}")]
