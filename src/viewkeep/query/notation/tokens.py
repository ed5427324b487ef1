"""Tokens of the query notation, each with its place in the text."""

import re
from dataclasses import dataclass

from viewkeep.errors import ParseError
from viewkeep.query.expressions import KEYWORDS

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*|--[^\n]*)
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<name>(?:[^\W\d]\w*|`(?:``|[^`])++`)(?:'+(?=\())?)
  | (?P<string>'(?:''|[^'])*+')
  | (?P<symbol><=>|<=|>=|<>|!=|->|[()\[\],;|=<>+\-*/%·.])
    """,
    re.VERBOSE,
)


RULES = 'the notation writes "=" and joins atoms with "*", as in Q(a) = R(a, b) * S(b)'
"""What they need who write `:-` or `:=`."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text: its kind, what it stands for, and where it starts."""

    kind: str
    text: str
    position: int
    quoted: bool = False


def tokenize(text: str) -> list[Token]:
    """All tokens of the text, the last one of kind `end`.

    >>> [token.text for token in tokenize("Q(a) = R(a, b)")][:4]
    ['Q', '(', 'a', ')']
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            hint = RULES if text[position] == ":" else ""
            raise ParseError(_character_error(text[position]), text, position, hint)
        kind = str(match.lastgroup)
        if kind != "space":
            tokens.append(_token(kind, match.group(), position))
        position = match.end()
    return [*tokens, Token("end", "the end", len(text.rstrip()))]


def _token(kind: str, text: str, position: int) -> Token:
    if kind == "name" and text.startswith("`"):
        stem = text.rstrip("'")
        name = stem[1:-1].replace("``", "`") + text[len(stem) :]
        return Token(kind, name, position, quoted=True)
    if kind == "string":
        return Token(kind, text[1:-1].replace("''", "'"), position)
    if kind == "name" and text.lower() in KEYWORDS:
        return Token(kind, text.lower(), position)
    return Token(kind, "<>" if text == "!=" else text, position)


def _character_error(character: str) -> str:
    if character in "'`":
        return f"the quote {character} is never closed"
    return f'unexpected character "{character}"'
