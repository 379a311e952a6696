"""What becomes of a hostile schema, in a process of its own: facts, as lines of JSON.

A process reads names of cases and forks for each, so that a crash takes nothing along.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
from typing import Any

import tokfold
from json_schema.hostile_cases import CASES, KEYWORDS, WRONG
from json_schema.languages import BYTES, Language
from support.forks import Write, forked
from support.processes import DEADLINE_S
from tokfold import Grammar, SchemaError

GIGABYTES = 4.0
SMALL_STACK = 256 << 10
DIALECTS = (
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "",
)


def compiled(schema: Any, options: dict[str, Any]) -> tuple[str, str, Language | None]:
    """What becomes of a schema: a result or the name of an error, and its message."""
    try:
        grammar = Grammar.from_json_schema(schema, **options)
        return "result", "", Language(grammar, tokfold.compile(grammar, BYTES, classes="never"))
    except tokfold.TokfoldError as error:
        name = type(error).__name__
        if isinstance(error, SchemaError) and not isinstance(error.pointer, str):
            return f"{name} without a pointer", str(error), None
        return name, str(error), None
    except Exception as error:
        return f"untyped: {type(error).__name__}", str(error), None


def examine(name: str, write: Write) -> None:
    """One case."""
    case = CASES[name]
    outcome, message, found = compiled(case.make(), case.options)
    write(["outcome", outcome, message[:300]])
    if found is not None:
        for text in case.accepted:
            if not found.accepts(text):
                write(["wrong", f"rejects {text[:60]}"])
        for text in case.rejected:
            if found.accepts(text):
                write(["wrong", f"accepts {text[:60]}"])
    write(["end"])


def examine_keyword(keyword: str, write: Write) -> None:
    """A keyword with values that it must not have, alone and beside others."""
    tried = 0
    for value in WRONG:
        for dialect in DIALECTS:
            head = {"$schema": dialect} if dialect else {}
            for schema in (
                {**head, keyword: value},
                {**head, "items": {keyword: value}, "type": "array"},
                {**head, "allOf": [{keyword: value}, {"not": {keyword: value}}]},
            ):
                outcome, message, _ = compiled(json.dumps(schema), {})
                tried += 1
                if (
                    outcome.startswith("untyped")
                    or " without" in outcome
                    or (outcome != "result" and len(message) < 15)
                ):
                    write(["wrong", f"{json.dumps(schema)}: {outcome}: {message[:100]}"])
    write(["outcome", "result", f"{tried} tried"])
    write(["end"])


def on_a_small_stack(name: str, write: Write) -> None:
    """The work in a thread as a server might start it."""
    threading.stack_size(SMALL_STACK)
    work = examine_keyword if name in KEYWORDS else examine
    thread = threading.Thread(target=work, args=(name, write))
    thread.start()
    thread.join()


def main() -> None:
    """Serve requests: a name on a line each, and a line of JSON for what became of it."""
    compiled({"type": "null"}, {})
    for line in sys.stdin:
        name = json.loads(line)
        outcome = forked(
            lambda write: on_a_small_stack(name, write),  # noqa: B023
            gigabytes=GIGABYTES,
            seconds=DEADLINE_S,
        )
        print(json.dumps(dataclasses.asdict(outcome)), flush=True)


if __name__ == "__main__":
    main()
