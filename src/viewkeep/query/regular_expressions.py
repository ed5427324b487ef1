"""Regular expressions of Java that other engines read in the same way.

Java's matcher knows more than RE2 and Python's `re`, and all three differ in what a dot, a blank,
an end or the case of a letter is. A pattern of the common part is written out for each engine, with
sets of characters in place of what differs; any other pattern is left to Spark.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

_MOST_REPEATS = 1000
_BLANKS = " \\t\\n\\x0B\\f\\r"
_ESCAPED = frozenset(".\\+*?()[]{}|^$-/_:,;=!@#%&'\"<>~` ")
"""Characters that stand for themselves behind a backslash."""
_SPECIAL = frozenset("\\.[]{}()*+?^$|")
_REPEATS = re.compile(r"\{(\d{1,4})(,(\d{1,4})?)?\}")


@dataclass(frozen=True)
class Pattern:
    """A pattern that has the same matches everywhere, as RE2 and as Python's `re` write it."""

    re2: str
    python: str
    groups: int
    matches_nothing: bool
    """Whether the empty text may be a match: engines go on behind it in different ways."""
    repeats_groups: bool
    at_end: bool
    """Whether a match is to end where the text does, or before its last line break."""


class _NotCommonError(Exception):
    """The pattern has something that engines read differently."""


@dataclass(frozen=True)
class _Part:
    """A part of a pattern: how each engine writes it, and whether it may match nothing."""

    re2: str
    python: str
    is_nullable: bool


@lru_cache(maxsize=256)
def common_pattern(java: str) -> Pattern | None:
    """The pattern, if it is of the common part.

    >>> pattern = common_pattern("^a.(b|[0-9]+)$")
    >>> print(pattern.re2, pattern.groups, pattern.at_end)
    \\Aa[^\\n\\r\\x{85}\\x{2028}\\x{2029}](b|[0-9]+) 1 True
    >>> common_pattern("(?i)a"), common_pattern(r"(a)\\1"), common_pattern("a$|b")
    (None, None, None)
    """
    at_end = _ends_with_dollar(java)
    reader = _Reader(java[:-1] if at_end else java)
    try:
        part = reader.alternatives(0)
        if reader.rest or (at_end and reader.has_choice):
            return None
    except (_NotCommonError, RecursionError):
        return None
    return Pattern(
        part.re2, part.python, reader.groups, part.is_nullable, reader.repeats_groups, at_end
    )


def literal_of_pattern(java: str) -> str | None:
    r"""The text that a pattern stands for, if all of it stands for itself.

    >>> literal_of_pattern(", "), literal_of_pattern(r"\|"), literal_of_pattern("[.]")
    (', ', '|', '.')
    >>> literal_of_pattern("a|b"), literal_of_pattern(r"\d"), literal_of_pattern("")
    (None, None, None)
    """
    parts = re.findall(r"\\(.)|\[(.)\]|(.)", java, re.DOTALL)
    text = ""
    for escaped, single, plain in parts:
        is_wrong = (escaped and escaped not in _ESCAPED) or single in ("^", "\\", "[", "]")
        if is_wrong or plain in _SPECIAL:
            return None
        text += escaped or single or plain
    return text or None


def _ends_with_dollar(java: str) -> bool:
    before = java[:-1]
    return java.endswith("$") and (len(before) - len(before.rstrip("\\"))) % 2 == 0


@lru_cache(maxsize=256)
def python_matcher(java: str) -> Callable[[str], bool]:
    """Whether a text has a match, for patterns of the common part."""
    pattern = common_pattern(java)
    if pattern is None:
        raise ValueError(f"only Spark knows what {java!r} matches")
    if not pattern.at_end:
        search = re.compile(pattern.python, re.ASCII).search
        return lambda text: search(text) is not None
    search = re.compile(f"(?:{pattern.python})\\Z", re.ASCII).search
    return lambda text: any(search(each) is not None for each in (text, _LAST_BREAK.sub("", text)))


_LAST_BREAK = re.compile("(?:\r\n|[\n\r\x85\u2028\u2029])\\Z")


@lru_cache(maxsize=256)
def python_pattern(java: str) -> re.Pattern[str]:
    """The compiled pattern, of the common part."""
    pattern = common_pattern(java)
    if pattern is None or pattern.at_end:
        raise ValueError(f"only Spark knows what {java!r} matches")
    return re.compile(pattern.python, re.ASCII)


def common_replacement(java: str, groups: int) -> str | None:
    """What takes the place of a match, with groups as `\\1`; None for what only Java reads.

    >>> print(common_replacement("<$1>", 1), common_replacement("$2", 1))
    <\\1> None
    """
    if "\\" in java:
        return None
    parts = re.split(r"\$(\d)(?!\d)", java)
    if any("$" in text for text in parts[::2]) or any(int(each) > groups for each in parts[1::2]):
        return None
    return "".join(f"\\{each}" if place % 2 else each for place, each in enumerate(parts))


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self.rest = text
        self.groups = 0
        self.repeats_groups = False
        self.has_choice = False

    def alternatives(self, depth: int) -> _Part:
        """Sequences with | between them."""
        parts = [self._sequence(depth)]
        while self._take("|"):
            self.has_choice |= depth == 0
            parts.append(self._sequence(depth))
        return _Part(
            "|".join(part.re2 for part in parts),
            "|".join(part.python for part in parts),
            any(part.is_nullable for part in parts),
        )

    def _sequence(self, depth: int) -> _Part:
        parts = [_Part("\\A", "\\A", True)] if self._take("^") else []
        while self.rest and self.rest[0] not in "|)":
            parts.append(self._repeated(depth))
        return _Part(
            "".join(part.re2 for part in parts),
            "".join(part.python for part in parts),
            all(part.is_nullable for part in parts),
        )

    def _repeated(self, depth: int) -> _Part:
        groups = self.groups
        part = self._single(depth)
        repeats = self._repeats()
        if not repeats:
            return part
        if part.is_nullable:
            raise _NotCommonError  # engines go around differently
        self.repeats_groups |= self.groups > groups
        lazy = "?" if self._take("?") else ""
        if self.rest[:1] in ("+", "*", "?", "{"):
            raise _NotCommonError
        is_nullable = repeats[0] in "*?" or re.match(r"\{0+[,}]", repeats) is not None
        return _Part(part.re2 + repeats + lazy, part.python + repeats + lazy, is_nullable)

    def _repeats(self) -> str:
        if self.rest[:1] in ("*", "+", "?"):
            return self._next()
        if not self.rest.startswith("{"):
            return ""
        match = _REPEATS.match(self.rest)
        if match is None:
            raise _NotCommonError
        least, most = int(match[1]), int(match[3] or match[1])
        if not least <= most <= _MOST_REPEATS:
            raise _NotCommonError
        self.rest = self.rest[match.end() :]
        return match[0]

    def _single(self, depth: int) -> _Part:
        character = self._next()
        if character == "(":
            return self._group(depth)
        if character == "[":
            text = self._set()
            return _Part(text, text, False)
        if character == ".":
            return _Part(
                "[^\\n\\r\\x{85}\\x{2028}\\x{2029}]", "[^\\n\\r\\x85\\u2028\\u2029]", False
            )
        if character == "\\":
            text = self._escape(inside=False)
            return _Part(text, text, False)
        if character in _SPECIAL:
            raise _NotCommonError
        text = _literal(character)
        return _Part(text, text, False)

    def _group(self, depth: int) -> _Part:
        if self._take("?:"):
            opening = "(?:"
        elif self.rest.startswith("?"):
            raise _NotCommonError
        else:
            opening = "("
            self.groups += 1
        part = self.alternatives(depth + 1)
        if not self._take(")"):
            raise _NotCommonError
        return _Part(f"{opening}{part.re2})", f"{opening}{part.python})", part.is_nullable)

    def _set(self) -> str:
        negation = "^" if self._take("^") else ""
        parts: list[str] = []
        if self.rest[:1] in ("]", "&"):
            raise _NotCommonError
        while not self._take("]"):
            character = self._next()
            if character == "\\":
                parts.append(self._escape(inside=True))
            elif character in "[&^" or (character == "-" and parts and self.rest[:1] != "]"):
                raise _NotCommonError
            else:
                parts.append(_literal(character))
                if len(self.rest) > 1 and self.rest[0] == "-" and self.rest[1] != "]":
                    parts.append(f"-{self._end_of_range(character)}")
        return f"[{negation}{''.join(parts)}]"

    def _end_of_range(self, first: str) -> str:
        self._next()
        last = self._next()
        if not (first.isalnum() and last.isalnum() and first <= last):
            raise _NotCommonError
        return _literal(last)

    def _escape(self, inside: bool) -> str:
        character = self._next()
        if character in "dDwW":
            return f"\\{character}"
        if character in "sS":
            negation = "^" if character == "S" else ""
            if inside and negation:
                raise _NotCommonError
            return _BLANKS if inside else f"[{negation}{_BLANKS}]"
        if character in "tnrf":
            return f"\\{character}"
        if character not in _ESCAPED:
            raise _NotCommonError
        return _literal(character)

    def _next(self) -> str:
        if not self.rest:
            raise _NotCommonError
        character, self.rest = self.rest[0], self.rest[1:]
        return character

    def _take(self, text: str) -> bool:
        if not self.rest.startswith(text):
            return False
        self.rest = self.rest[len(text) :]
        return True


def _literal(character: str) -> str:
    """A character that stands for itself, in and outside of sets."""
    if character.isascii() and not character.isalnum() and character != "_":
        return f"\\x{ord(character):02X}"
    return character
