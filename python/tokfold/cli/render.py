r"""How bytes, tokens, numbers and distributions are shown to a person.

Tokens are shown in quotes with C-like escapes, so that white space, quotes and bytes that
are no text can be told apart: ``" the"``, ``"\n"``, ``"\xe2\x80"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich import box
from rich.cells import cell_len
from rich.table import Table

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\\": "\\\\"}


def escaped(data: bytes) -> str:
    """Text that shows every byte: what is not printable UTF-8 becomes an escape."""
    # Bytes that are no UTF-8 come back as lone surrogates U+DC80 to U+DCFF.
    parts = []
    for char in data.decode("utf-8", "surrogateescape"):
        point = ord(char)
        if char in _ESCAPES:
            parts.append(_ESCAPES[char])
        elif 0xDC80 <= point <= 0xDCFF:
            parts.append(f"\\x{point - 0xDC00:02x}")
        elif char.isprintable() and cell_len(char) > 0:
            parts.append(char)
        else:
            parts.append(f"\\x{point:02x}" if point < 0x80 else f"\\u{{{point:x}}}")
    return "".join(parts)


_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|(.?))", re.DOTALL)
_UNESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\", '"': b'"', "'": b"'"}


def unescaped(text: str) -> bytes:
    """The bytes of a text as :func:`escaped` shows them."""
    result, at = b"", 0
    for match in _ESCAPE.finditer(text):
        byte, point, char = match.groups()
        result += text[at : match.start()].encode("utf-8", "surrogateescape")
        at = match.end()
        if byte is not None:
            result += bytes([int(byte, 16)])
        elif point is not None:
            result += _character(point)
        elif char in _UNESCAPES:
            result += _UNESCAPES[char]
        elif char == "x":
            shown = text[match.start() : match.start() + 4]
            raise ValueError(f"{shown} is no byte: two hexadecimal digits must follow \\x")
        else:
            raise ValueError(
                f"{match[0]} is no escape; there are \\n \\r \\t \\0 \\xHH \\u{{H...}}, and "
                "\\\\ for the backslash itself"
            )
    return result + text[at:].encode("utf-8", "surrogateescape")


def _character(point: str) -> bytes:
    try:
        return chr(int(point, 16)).encode()
    except (ValueError, UnicodeEncodeError) as error:
        raise ValueError(f"\\u{{{point}}} is no character") from error


def quoted(text: str) -> str:
    """What :func:`escaped` gave, in quotes that it does not hold, double ones if possible."""
    if '"' in text and "'" not in text:
        return f"'{text}'"
    return '"' + text.replace('"', '\\"') + '"'


def quoted_list(tokens: Iterable[str], width: int) -> str:
    """As many escaped tokens as fit into ``width`` cells; long ones are cut."""
    shown = ""
    for token in tokens:
        text = quoted(token)
        if cell_len(text) > 28:
            text = f"{_cut(text, 24)}...{text[-1]}"
        longer = f"{shown} {text}" if shown else text
        if cell_len(longer) > width:
            break
        shown = longer
    return shown


def _cut(text: str, width: int) -> str:
    while cell_len(text) > width:
        text = text[:-1]
    return text.rstrip("\\")  # half an escape would read as another


def number(value: float) -> str:
    """``131,072``."""
    return f"{value:,}"


def seconds(value: float) -> str:
    """A time with three digits and the unit that fits it."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{_three_digits(value * factor)} {unit}"
    return f"{_three_digits(value)} s"


def size(value: float) -> str:
    """A number of bytes with a binary unit."""
    for unit in ("bytes", "KB", "MB"):
        if value < 1024:
            return f"{value:,.0f} {unit}" if unit == "bytes" else f"{_three_digits(value)} {unit}"
        value /= 1024
    return f"{_three_digits(value)} GB"


def _three_digits(value: float) -> str:
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{decimals}f}"


def bar(value: float, largest: float, width: int, fill: str) -> str:
    """A bar in proportion; anything above zero shows."""
    if value <= 0 or largest <= 0:
        return ""
    return fill * max(1, round(width * value / largest))


_BYTE_NAMES = {9: "tab", 10: "line end", 13: "carriage return", 32: "space"}
_WHITE = frozenset(b" \t\n\r\v\f")
_PRINTABLE = range(0x20, 0x7F)
_MOST = len(_PRINTABLE) - 16


def byte_ranges(expected: Sequence[int]) -> list[str]:
    """A set of bytes, ascending, as readable ranges: ``0-9``, ``"_"``, ``space``."""
    low = [byte for byte in expected if byte < 0x80]
    printable = [byte for byte in low if byte in _PRINTABLE]
    if len(printable) < _MOST:
        return [*_ranges(low), *_high_bytes(expected[len(low) :])]
    missing = _ranges([byte for byte in _PRINTABLE if byte not in set(printable)])
    most = "any printable ASCII" + (f" except {' '.join(missing)}" if missing else "")
    control = _ranges([byte for byte in low if byte not in _PRINTABLE])
    return [most, *control, *_high_bytes(expected[len(low) :])]


def _ranges(low: Sequence[int]) -> list[str]:
    shown: list[str] = []
    if set(b" \t\n") <= set(low):
        shown.append("white space")
        low = [byte for byte in low if byte not in _WHITE]
    run: list[int] = []
    for byte in low:
        if run and byte == run[-1] + 1 and byte not in _BYTE_NAMES and _kind(byte) == _kind(run[0]):
            run.append(byte)
            continue
        shown.extend(_run(run))
        run = [] if byte in _BYTE_NAMES else [byte]
        shown.extend([_BYTE_NAMES[byte]] if byte in _BYTE_NAMES else [])
    return [*shown, *_run(run)]


def _kind(byte: int) -> str:
    char = chr(byte)
    if char.isdigit():
        return "digit"
    if char.isalpha():
        return "upper" if char.isupper() else "lower"
    return "other" if char.isprintable() else "control"


def _run(run: list[int]) -> list[str]:
    if not run:
        return []
    names = [chr(byte) if 0x20 < byte < 0x7F else f"\\x{byte:02x}" for byte in run]
    if len(run) >= 3 and _kind(run[0]) != "other":
        return [f"{names[0]}-{names[-1]}"]
    return [quoted(name) if byte > 0x20 else name for name, byte in zip(names, run, strict=True)]


def _high_bytes(high: Sequence[int]) -> list[str]:
    if not high:
        return []
    if high[0] >= 0xC2:
        return ["a non-ASCII character"]
    if len(high) == high[-1] - high[0] + 1:
        return [f"\\x{high[0]:02x}-\\x{high[-1]:02x}" if len(high) > 1 else f"\\x{high[0]:02x}"]
    return [f"one of {len(high)} bytes from \\x{high[0]:02x} to \\x{high[-1]:02x}"]


def table(*columns: str, title: str | None = None) -> Table:
    """A table in the house style: a column whose name begins with ``>`` is flush right.

    A column named ``*...`` takes what room is left and is cut, not wrapped.
    """
    result = Table(
        box=box.SIMPLE_HEAD,
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="dim",
        pad_edge=False,
        min_width=None if title is None else len(title) + 2,  # so that it is not broken
        show_header=any(name.strip(">*") for name in columns),
    )
    for name in columns:
        right, rest = name.startswith(">"), name.startswith("*")
        result.add_column(
            name.strip(">*"),
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis" if rest else "fold",
            ratio=1 if rest else None,
        )
    return result
