"""What requests ask for, before anything is compiled: checked, and in one form."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable
from typing import Any

from tokfold import _json
from tokfold._quoting import quoted
from tokfold._tags.fields import fail, kind
from tokfold._tags.literals import literal
from tokfold._tags.old_form import in_new_form
from tokfold._tags.reading import document_of
from tokfold._text_checks import check_nesting, check_text
from tokfold.errors import UnsupportedGrammarError

_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class Passed:
    """The digests of requests that passed a check: servers get the same few schemas repeatedly.

    A request that is refused is checked each time. Safe between threads.

    Args:
        most: the number of digests that are kept; the oldest goes first.
    """

    def __init__(self, most: int = 4_096) -> None:
        self._most = most
        self._known: dict[bytes, None] = {}
        self._lock = threading.Lock()

    def check(self, parts: Iterable[str], check: Callable[[], object]) -> None:
        """Call the check, unless the same texts passed it before; its errors go through."""
        digest = hashlib.blake2b(digest_size=16)
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
        key = digest.digest()
        if key in self._known:
            return
        check()
        with self._lock:
            self._known[key] = None
            if len(self._known) > self._most:
                del self._known[next(iter(self._known))]


def checked(text: str, what: str, *, is_json: bool = False) -> str:
    """The text of a request, if converters can be trusted with it.

    Raises:
        TypeError: it is no text.
        UnsupportedGrammarError: it holds NUL, on which some versions of XGrammar end the process,
            or a lone surrogate.
        LimitExceededError: it is JSON that is nested too deeply for who reads it by recursion.
    """
    check_text(text, what)
    if is_json:
        check_nesting(text, what)
        if _ESCAPED_NUL.search(text):
            raise UnsupportedGrammarError(f"this {what} holds NUL, which no text has", what, 1, 1)
    return text


_OLD_FORM = (
    "a structural tag of the old form has triggers, a list of texts, and structures, a list of "
    "objects with begin, schema and end"
)


def any_tag(text: str) -> dict[str, Any]:
    """A structural tag of a request as a value; one of the old form in the new one.

    :func:`tokfold._json.dumps` writes it with the digits that its numbers have in the request.

    The old form lists ``structures`` of begin, schema and end, and ``triggers``. A schema that is
    missing allows any JSON.
    """
    tag = document_of(checked(text, "structural tag", is_json=True))
    if not isinstance(tag, dict):
        fail("", f"a structural tag is a JSON object, not {kind(tag)}")
    if tag.get("structures") is None:
        if "format" in tag:
            tag["format"] = _with_schemas(tag["format"])
        return tag
    try:
        return in_new_form(tag, _schema)
    except KeyError as error:
        raise ValueError(f"{_OLD_FORM}; {quoted(error.args[0])} is missing") from error
    except (AttributeError, TypeError) as error:
        raise ValueError(f"{_OLD_FORM}; one of them is a value of another kind") from error


def _schema(text: str, path: str) -> object:
    """A schema of the old form that is text."""
    try:
        return _json.read(checked(text, f"text of {path}", is_json=True))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        fail(path, f"the text is no JSON: {place}: {error.msg}; write a schema")


def _with_schemas(node: Any) -> Any:  # noqa: ANN401 - JSON
    """Formats in which a schema that is null, as frontends send it, allows any JSON."""
    if isinstance(node, list):
        return [_with_schemas(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {
        key: value if key == "json_schema" else _with_schemas(value) for key, value in node.items()
    }
    if made.get("type") == "json_schema" and made.get("json_schema") is None:
        made["json_schema"] = {}
    return made


def choices(texts: object) -> str:
    """Grammar text of a list of texts, one of which is to be written."""
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        raise ValueError("choices are a list of texts, at least one")
    return f"root ::= {' | '.join(literal(checked(text, 'choice')) for text in texts)}"
