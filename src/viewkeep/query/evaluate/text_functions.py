"""Further functions of texts and bytes, on values that are not NULL."""

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any

from viewkeep.query.regular_expressions import common_replacement, python_matcher, python_pattern


def _bytes_of(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else str.encode(value)


def _padding(text: str, length: int, pad: str) -> str:
    """What is put before or after a text of fewer characters."""
    missing = max(length - len(text), 0)
    return (pad * -(-missing // len(pad)))[:missing] if pad else ""


def _left_padded(text: str, length: int, pad: str = " ") -> str:
    kept = text[: max(length, 0)]
    return _padding(kept, length, pad) + kept


def _right_padded(text: str, length: int, pad: str = " ") -> str:
    kept = text[: max(length, 0)]
    return kept + _padding(kept, length, pad)


def _translated(text: str, old: str, new: str) -> str:
    """Characters in place of others; those that have no other one go."""
    others: dict[str, str] = {}
    for place, character in enumerate(old):
        others.setdefault(character, new[place : place + 1])
    return "".join(others.get(character, character) for character in text)


def _split_part(text: str, delimiter: str, place: int) -> str:
    """A part of a text, counted from 1, or from the end by negative numbers."""
    if place == 0:
        raise ValueError("parts of a text are counted from 1")
    parts = text.split(delimiter) if delimiter else [text]
    at = place - 1 if place > 0 else len(parts) + place
    return parts[at] if 0 <= at < len(parts) else ""


def _substring_index(text: str, delimiter: str, count: int) -> str:
    """What is before the n-th delimiter, or after the n-th from the end."""
    parts = text.split(delimiter)
    return delimiter.join(parts[:count] if count >= 0 else parts[count:])


def _sha2(value: str | bytes, bits: int) -> str:
    return hashlib.sha256(_bytes_of(value)).hexdigest()


def _regexp_extract(text: str, java: str, group: int = 1) -> str:
    match = python_pattern(java).search(text)
    return (match[group] or "") if match else ""


def _regexp_replace(text: str, java: str, new: str) -> str:
    pattern = python_pattern(java)
    replacement = common_replacement(new, pattern.groups)
    if replacement is None:
        raise ValueError(f"only Spark knows what {new!r} stands for")
    parts = re.split(r"\\(\d)", replacement)

    def replaced(match: re.Match[str]) -> str:
        return "".join(
            (match[int(each)] or "") if place % 2 else each for place, each in enumerate(parts)
        )

    return pattern.sub(replaced, text)


TEXT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "lpad": _left_padded,
    "rpad": _right_padded,
    "repeat": lambda text, count: str.__mul__(text, count),
    "reverse": lambda value: value[::-1],
    "translate": _translated,
    "split_part": _split_part,
    "substring_index": _substring_index,
    "rlike": lambda text, java: python_matcher(java)(text),
    "regexp_extract": _regexp_extract,
    "regexp_replace": _regexp_replace,
    "ascii": lambda text: ord(str.__getitem__(text, 0)) if text else 0,
    "md5": lambda value: hashlib.md5(_bytes_of(value), usedforsecurity=False).hexdigest(),
    "sha1": lambda value: hashlib.sha1(_bytes_of(value), usedforsecurity=False).hexdigest(),
    "sha2": _sha2,
    "octet_length": lambda value: len(_bytes_of(value)),
    "bit_length": lambda value: 8 * len(_bytes_of(value)),
    "hex": lambda value: _bytes_of(value).hex().upper(),
    "base64": lambda value: base64.b64encode(_bytes_of(value)).decode(),
}
"""By name."""
