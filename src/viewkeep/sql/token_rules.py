"""Texts that the parser would read although a part of them is missing or out of its place."""

from collections.abc import Callable, Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from viewkeep.errors import ParseError

Problem = tuple[int, str]
"""Where something is wrong, and what."""

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_LISTS = (TokenType.SELECT, TokenType.FROM, TokenType.GROUP_BY, TokenType.ORDER_BY)
_AFTER_COMMA = (*_CLOSING, TokenType.COMMA, TokenType.SEMICOLON, TokenType.FROM)
_CLAUSES = (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY)
"""The clauses of a block in the order in which they are written."""
_STARTS = (
    *(TokenType.SELECT, TokenType.FROM, TokenType.UNION, TokenType.EXCEPT),
    *(TokenType.INTERSECT, TokenType.SEMICOLON, TokenType.PIPE_GT),
)
"""What begins another block, or another step of one."""
_AFTER_JOIN = (*_CLOSING, *_CLAUSES, TokenType.SEMICOLON, TokenType.UNION)


def check_tokens(text: str, tokens: Sequence[Token]) -> None:
    """Refuse the first part that is missing or out of its place."""
    problems = [problem for rule in RULES for problem in rule(tokens)]
    if problems:
        start, problem = min(problems)
        raise ParseError(f"SQL: {problem}", text, start)


def _tokens_with_neighbours(
    tokens: Sequence[Token],
) -> Iterator[tuple[Token | None, Token, Token | None]]:
    """Each token with the one before and the one behind it."""
    return zip([None, *tokens], tokens, [*tokens[1:], None], strict=False)


def lonely_commas(tokens: Sequence[Token]) -> Iterator[Problem]:
    """A comma stands between two members of a list."""
    for before, token, behind in _tokens_with_neighbours(tokens):
        if token.token_type is not TokenType.COMMA:
            continue
        if before is None or before.token_type in (*_OPENING, *_LISTS):
            yield token.start, "nothing stands before this comma"
        elif behind is None or behind.token_type in _AFTER_COMMA:
            yield token.start, "nothing stands behind this comma"


def joins_without_condition(tokens: Sequence[Token]) -> Iterator[Problem]:
    """ON has a condition, and USING has columns."""
    for _, token, behind in _tokens_with_neighbours(tokens):
        if token.token_type not in (TokenType.ON, TokenType.USING):
            continue
        if behind is None or behind.token_type in _AFTER_JOIN:
            yield token.start, f"nothing stands behind {token.text.upper()}"


def empty_lists(tokens: Sequence[Token]) -> Iterator[Problem]:
    """USING and EXCEPT name columns, SELECT has some, and BETWEEN has a lower bound."""
    kinds = [token.token_type for token in tokens]
    for number, token in enumerate(tokens):
        match token.token_type, *kinds[number + 1 : number + 3]:
            case TokenType.USING | TokenType.EXCEPT, TokenType.L_PAREN, TokenType.R_PAREN:
                yield token.start, f"nothing stands in the brackets of {token.text.upper()}"
            case TokenType.SELECT, TokenType.DISTINCT, TokenType.FROM:
                yield token.start, "SELECT DISTINCT has no columns"
            case TokenType.BETWEEN, TokenType.AND, *_:
                yield token.start, "BETWEEN has no lower bound"


def clauses_out_of_order(tokens: Sequence[Token]) -> Iterator[Problem]:
    """WHERE, GROUP BY, HAVING and ORDER BY of a block follow each other."""
    last: list[TokenType | None] = [None]
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            last.append(None)
        elif kind in _CLOSING:
            last = last[:-1] or [None]
        elif kind in _STARTS:
            last[-1] = None
        elif kind in _CLAUSES:
            latest = last[-1]
            if latest is not None and _CLAUSES.index(kind) < _CLAUSES.index(latest):
                later = latest.name.replace("_", " ")
                yield token.start, f"{token.text.upper()} has to stand before {later}"
            last[-1] = kind


RULES: tuple[Callable[[Sequence[Token]], Iterator[Problem]], ...] = (
    lonely_commas,
    joins_without_condition,
    empty_lists,
    clauses_out_of_order,
)


def deepest(tokens: Sequence[Token]) -> int:
    """Where brackets are deepest; the start where there are none."""
    depth = most = place = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > most:
            most, place = depth, token.start
    return place
