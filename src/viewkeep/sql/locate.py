"""Where in the text a construct stands that keeps a view from being a conjunctive query."""

import re

_WORDS = (
    ("HAVING", r"\bhaving\b"),
    ("outer join", r"\b(left|right|full)\b"),
    ("antijoin", r"\b(not\s+in|not\s+exists|except|minus|anti)\b"),
    ("semijoin", r"\b(in|exists|intersect|semi)\b"),
    ("union", r"\bunion\b"),
    ("GROUP BY", r"\bgroup\s+by\b"),
    ("DISTINCT", r"\bdistinct\b"),
    ("null-safe", r"<=>"),
)
"""A word of the message and what such a construct looks like in SQL; the first that fits."""

_NOT_CODE = re.compile(r"'(?:''|\\.|[^'])*'|`[^`]*`|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)


def locate(construct: str, sql: str) -> int | None:
    """The position of the construct's keyword, outside strings and comments, if it has one.

    >>> locate("an outer join (rewritten as a union)", "select a from r left join s using (a)")
    16
    """
    code = _NOT_CODE.sub(lambda match: " " * len(match[0]), sql)
    for word, pattern in _WORDS:
        if word in construct:
            match = re.search(pattern, code, re.IGNORECASE)
            return match.start() if match else None
    return None


def describe_position(sql: str, position: int) -> str:
    """A position for people: `at line 2, column 5`."""
    before = sql[:position]
    return f"at line {before.count(chr(10)) + 1}, column {position - before.rfind(chr(10))}"
