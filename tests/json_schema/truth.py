"""What two validators say that know nothing of each other: Python's and Rust's ``jsonschema``.

The rule of MaskBench's labels: a dialect by ``$schema``, else 2020-12, and formats asserted in
every dialect.
"""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import jsonschema_rs

_PYTHON = {
    "draft-03": jsonschema.Draft3Validator,
    "draft-04": jsonschema.Draft4Validator,
    "draft-06": jsonschema.Draft6Validator,
    "draft-07": jsonschema.Draft7Validator,
    "2019-09": jsonschema.Draft201909Validator,
    "2020-12": jsonschema.Draft202012Validator,
}
_RUST = {
    "draft-04": jsonschema_rs.Draft4Validator,
    "draft-06": jsonschema_rs.Draft6Validator,
    "draft-07": jsonschema_rs.Draft7Validator,
    "2019-09": jsonschema_rs.Draft201909Validator,
    "2020-12": jsonschema_rs.Draft202012Validator,
}


def dialect(schema: Any) -> str:
    """The dialect of a schema."""
    uri = schema.get("$schema") if isinstance(schema, dict) else None
    return next((d for d in _PYTHON if isinstance(uri, str) and d in uri), "2020-12")


class Validators:
    """Both validators of one schema.

    Args:
        schema: the schema.
        formats: whether ``format`` is asserted.
    """

    def __init__(self, schema: Any, *, formats: bool = True) -> None:
        name = dialect(schema)
        checker = jsonschema.Draft202012Validator.FORMAT_CHECKER if formats else None
        self._python = _PYTHON[name](schema, format_checker=checker)
        self._rust = _RUST[name](schema, validate_formats=formats)

    def verdict(self, value: Any) -> bool | None:
        """Whether a value is valid; None where the two disagree."""
        rust = self._rust.is_valid(value)
        return rust if self._python.is_valid(value) == rust else None

    def quick_verdict(self, value: Any) -> bool:
        """What Rust's validator says, which is many times faster."""
        return self._rust.is_valid(value)
