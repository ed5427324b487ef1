"""Texts with several statements that define tables and views, as projects keep them in files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from viewkeep.errors import ParseError, UnreadableError, UnsupportedError
from viewkeep.sql.parse import single_query
from viewkeep.sql.source import Source, ViewDialect
from viewkeep.sql.unread import names_of_tables
from viewkeep.sql.verbatim import tables_in_from
from viewkeep.sql.view_statement import ViewStatement, read_view_statement

_OPTIONS = re.compile(r"\s*viewkeep:\s*(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class TextStatement:
    """One statement: CREATE TABLE, or a `view` or query; with options that stand in comments such
    as `-- viewkeep: strategy = viewtree, lag = 10s`. The text has blanks for what stands before it,
    so that errors tell its place in the file."""

    text: str
    view: ViewStatement | None
    options: tuple[tuple[str, str], ...] = ()
    table: str = ""

    @property
    def is_setting(self) -> bool:
        """Whether it is a SET of Spark, which says how to run and not what to keep."""
        return self.text.split(maxsplit=1)[0].upper() == "SET"


def read_definitions(text: str) -> list[TextStatement]:
    """The statements of a text.

    >>> [table, view] = read_definitions(
    ...     "CREATE TABLE t (a INT PRIMARY KEY);\\n-- viewkeep: policy = strict\\n"
    ...     "CREATE MATERIALIZED VIEW v COMMENT 'all' AS SELECT a FROM t"
    ... )
    >>> table.view, view.view.name, view.view.comment, view.options
    (None, 'v', 'all', (('policy', 'strict'),))
    """
    try:
        tokens = ViewDialect().tokenize(text)
    except TokenError as error:
        raise ParseError(str(error).splitlines()[0], text, 0) from None
    return [_text_statement(text, part) for part in _statement_tokens(tokens)]


def tables_named(sql: str) -> list[str]:
    """The tables and views that a query names.

    >>> tables_named("WITH p AS (SELECT * FROM parts) SELECT * FROM p JOIN shop.uses u ON true")
    ['parts', 'shop.uses']
    """
    source = Source(sql)
    try:
        nodes: list[exp.Table] = list(tables_in_from(single_query(source), ()))
    except UnreadableError:  # Spark reads more
        return names_of_tables(source.tokens)
    except RecursionError:
        raise source.too_deep() from None
    return list(dict.fromkeys(".".join(part.name for part in node.parts) for node in nodes))


def _statement_tokens(tokens: list[Token]) -> Iterator[list[Token]]:
    part: list[Token] = []
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            part.append(token)
        elif part:
            yield part
            part = []
    if part:
        yield part


def _text_statement(text: str, tokens: list[Token]) -> TextStatement:
    start, end = tokens[0].start, tokens[-1].end + 1
    own = re.sub(r"[^\n]", " ", text[:start]) + text[start:end]
    options = tuple(pair for token in tokens for pair in _options_of_comments(token, text))
    words = [each.text.upper() for each in tokens[:5]]
    if words[0] != "CREATE":
        return TextStatement(own, ViewStatement(own, own), options)
    if "STREAMING" in words or "FLOW" in words:
        problem = f"CREATE {words[words.index('CREATE') + 1]} ... (a stream into a table)"
        raise UnsupportedError(
            f"{problem} is not supported in a project",
            *(text, start),
            hint="make it a table, and let keeper.sink() take the batches of the stream",
        )
    if "VIEW" not in words:
        return TextStatement(own, None, options, _table_name(own))
    return TextStatement(own, read_view_statement(own), options)


def _options_of_comments(token: Token, text: str) -> Iterator[tuple[str, str]]:
    for comment in token.comments or ():
        options = _OPTIONS.fullmatch(comment)
        for pair in options[1].split(",") if options else ():
            name, equals, value = pair.partition("=")
            if not equals or not name.strip() or not value.strip():
                problem = f'"-- viewkeep: {options[1].strip() if options else ""}"'
                raise ParseError(f"{problem}: expected name = value, ...", text, token.start)
            yield name.strip(), value.strip()


def _table_name(text: str) -> str:
    [statement] = Source(text).statements()
    if not isinstance(statement, exp.Create) or statement.find(exp.Table) is None:
        start = len(text) - len(text.lstrip())
        raise ParseError("expected CREATE TABLE or CREATE MATERIALIZED VIEW", text, start)
    node = statement.this.find(exp.Table)
    return ".".join(part.name for part in node.parts)
