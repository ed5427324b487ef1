"""Texts that do not parse here, though Spark may read them: what their tokens tell of tables, and
of what has no stable answer. Spark's analysis then says whether the rest is a query."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from viewkeep.errors import ParseError, UnsupportedError, did_you_mean
from viewkeep.query.tables import Table
from viewkeep.query.types.functions import BARE_FUNCTIONS, is_deterministic
from viewkeep.sql.spark_functions import unknown_function

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_BEFORE_TABLES = (TokenType.FROM, TokenType.JOIN)
_OPEN, _CLOSE = TokenType.L_PAREN, TokenType.R_PAREN
_WITH_FROM = ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION")
"""Functions in whose brackets FROM names no table."""
_REFUSED = {TokenType.TABLE_SAMPLE: "TABLESAMPLE", TokenType.PARAMETER: "time travel"}
_TIME_TRAVEL = ("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME")


def check_unread(text: str, tokens: Sequence[Token], functions: Collection[str]) -> None:
    """Refuse what has no stable answer, and functions that nobody said to be deterministic."""
    for place, token in enumerate(tokens):
        word, behind = token.text.lower(), _kind(tokens, place + 1)
        refused = _REFUSED.get(token.token_type)
        if word.upper() in _TIME_TRAVEL and _words(tokens, place + 1, 2) == ["AS", "OF"]:
            refused = "time travel"
        if word == "identifier" and behind is _OPEN:
            refused = "IDENTIFIER()"
        if refused is not None:
            raise UnsupportedError(f"{refused} is not supported in a view", text, token.start)
        if behind is _OPEN and token.token_type in _NAMES and not _is_alias(tokens, place):
            _check_call(word, text, tokens, place, functions)
        elif word in BARE_FUNCTIONS and token.token_type is not TokenType.IDENTIFIER:
            _refuse_unstable_word(word, text, token.start)


def _check_call(
    word: str, text: str, tokens: Sequence[Token], place: int, functions: Collection[str]
) -> None:
    start = tokens[place].start
    if not is_deterministic(word, int(_kind(tokens, place + 2) is not _CLOSE)):
        _refuse_unstable_word(word, text, start)
    if word not in functions and _kind(tokens, place - 1) is not TokenType.DOT:
        raise ParseError(unknown_function(word, functions, True), text, start)


def _refuse_unstable_word(word: str, text: str, start: int) -> None:
    problem = f"the non-deterministic function {word}() is not supported in a view"
    raise UnsupportedError(problem, text, start)


def tables_of_unread(text: str, tokens: Sequence[Token], tables: Mapping[str, Table]) -> list[str]:
    """The tables behind FROM and JOIN; a name that is neither one of them nor in WITH is unknown.

    >>> from viewkeep.sql.source import Source
    >>> sql = "WITH q AS (SELECT * FROM Parts) SELECT a:b::int FROM q, LATERAL (SELECT 1)"
    >>> tables_of_unread(sql, Source(sql).tokens, {"parts": Table({"pid": "int"})})
    ['parts']
    """
    common = set(_common_names(tokens))
    lower = {name.lower(): name for name in tables}
    found: dict[str, None] = {}
    for place in _places_of_tables(tokens):
        name = _dotted_name(tokens, place)
        if name.lower() in lower:
            found[lower[name.lower()]] = None
        elif name.lower() not in common:
            listed = f" ({', '.join(tables)})" if tables else ""
            problem = f'unknown table "{name}"{listed}{did_you_mean(name, tables)}'
            raise ParseError(problem, text, tokens[place].start)
    return list(found)


def names_of_tables(tokens: Sequence[Token]) -> list[str]:
    """The names behind FROM and JOIN that WITH does not define."""
    common = set(_common_names(tokens))
    names = dict.fromkeys(_dotted_name(tokens, place) for place in _places_of_tables(tokens))
    return [name for name in names if name.lower() not in common]


def _places_of_tables(tokens: Sequence[Token]) -> Iterator[int]:
    """Where names of tables stand: behind FROM and JOIN, and behind commas of the same list."""
    lists: list[bool] = [False]
    for place, token in enumerate(tokens):
        kind = token.token_type
        if kind is _OPEN:
            lists.append(lists[-1] and _kind(tokens, place - 1) not in _NAMES)
        elif kind is _CLOSE:
            lists = lists[:-1] or [False]
        elif kind in _BEFORE_TABLES:
            lists[-1] = not _is_from_of_function(tokens, place)
        elif kind not in (*_NAMES, TokenType.COMMA, TokenType.DOT, TokenType.ALIAS):
            lists[-1] = lists[-1] and kind in (TokenType.LATERAL, TokenType.CROSS, TokenType.ON)
        starts = _kind(tokens, place - 1) in (*_BEFORE_TABLES, TokenType.COMMA, _OPEN)
        if kind in _NAMES and lists[-1] and starts and not _is_call(tokens, place):
            yield place


def _is_call(tokens: Sequence[Token], place: int) -> bool:
    end = place
    while _kind(tokens, end + 1) is TokenType.DOT:
        end += 2
    return _kind(tokens, end + 1) is _OPEN


def _is_from_of_function(tokens: Sequence[Token], place: int) -> bool:
    """Whether FROM stands in `extract(DAY FROM d)`, or in IS DISTINCT FROM."""
    if _kind(tokens, place - 1) is TokenType.DISTINCT:
        return True
    depth = 0
    for before in range(place - 1, 0, -1):
        kind = tokens[before].token_type
        depth += (kind is _CLOSE) - (kind is _OPEN)
        if depth < 0:
            return tokens[before - 1].text.upper() in _WITH_FROM
    return False


def _common_names(tokens: Sequence[Token]) -> Iterator[str]:
    """The names in `name AS (` and `name (columns) AS (`."""
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.ALIAS and _kind(tokens, place + 1) is _OPEN:
            end = place - 1
            if _kind(tokens, end) is _CLOSE:
                while end > 0 and tokens[end].token_type is not _OPEN:
                    end -= 1
                end -= 1
            yield tokens[end].text.lower()


def _is_alias(tokens: Sequence[Token], place: int) -> bool:
    """Whether a name with brackets has those of the columns of a table's alias."""
    return _kind(tokens, place - 1) in (*_NAMES, _CLOSE, TokenType.ALIAS, TokenType.WITH)


def _dotted_name(tokens: Sequence[Token], place: int) -> str:
    parts = [tokens[place].text]
    while _kind(tokens, place + 1) is TokenType.DOT and place + 2 < len(tokens):
        place += 2
        parts.append(tokens[place].text)
    return ".".join(parts)


def _kind(tokens: Sequence[Token], place: int) -> TokenType | None:
    return tokens[place].token_type if 0 <= place < len(tokens) else None


def _words(tokens: Sequence[Token], place: int, count: int) -> list[str]:
    return [token.text.upper() for token in tokens[place : place + count]]
