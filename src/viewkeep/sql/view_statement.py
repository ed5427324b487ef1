"""CREATE VIEW as text: the name, what it asks for, and where its query stands."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from viewkeep.errors import ParseError, QueryError, UnsupportedError
from viewkeep.sql.source import ViewDialect


@dataclass(frozen=True)
class ViewStatement:
    """A view as SQL writes it; a query alone has no name and asks for nothing."""

    query: str
    text: str
    name: str | None = None
    replace: bool = False
    if_not_exists: bool = False
    comment: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse a list of columns that are not those of the query."""
        own = list(names)
        if self.columns and [each.lower() for each in self.columns] != [n.lower() for n in own]:
            listed, given = ", ".join(self.columns), ", ".join(own)
            raise QueryError(
                f'view "{self.name}" lists the columns {listed}, and its query gives {given}; '
                "name them in the query, with AS"
            )

    @contextmanager
    def whole_text_errors(self) -> Iterator[None]:
        """Errors of the query at their places in the whole text."""
        try:
            yield
        except ParseError as error:
            start = len(self.text) - len(self.query)
            if not start or error.text != self.query:
                raise
            raise type(error)(error.problem, self.text, start + error.position) from None


def read_view_statement(sql: str) -> ViewStatement:
    """`CREATE [OR REPLACE] [MATERIALIZED] VIEW [IF NOT EXISTS] name [(columns)] [COMMENT 'text']
    [TBLPROPERTIES ('name' = 'value', ...)] AS query`, or a query. How a table is stored (USING,
    PARTITIONED BY, CLUSTER BY) is skipped.

    >>> statement = read_view_statement("create or replace view v as\\nselect 1")
    >>> statement.name, statement.replace, statement.query
    ('v', True, 'select 1')
    """
    try:
        tokens = ViewDialect().tokenize(sql)
    except TokenError:  # told with its place when the query is read
        return ViewStatement(sql, sql)
    if not tokens or tokens[0].token_type is not TokenType.CREATE:
        return ViewStatement(sql, sql)
    words = _StatementWords(sql, tokens[1:])
    replace = words.take("OR", "REPLACE") or words.take("OR", "REFRESH")
    words.take("MATERIALIZED") or words.take("TEMPORARY")
    if not words.take("VIEW"):
        raise words.error("a view is a SELECT query, or CREATE VIEW name AS one")
    if_not_exists = words.take("IF", "NOT", "EXISTS")
    name, comment, properties = words.name(), "", tuple[tuple[str, str], ...]()
    columns = words.column_names() if words.comes("(") else ()
    while not words.take("AS"):
        if words.take("COMMENT"):
            comment = words.text()
        elif words.take("TBLPROPERTIES"):
            properties = words.pairs()
        elif words.take("USING"):
            words.name()
        elif any(words.take(*each) for each in _STORAGE):
            words.brackets()
        else:
            raise words.unsupported()
    about = (name, replace, if_not_exists, comment, properties, columns)
    return ViewStatement(sql[words.start :], sql, *about)


_STORAGE = (("PARTITIONED BY",), ("PARTITIONED", "BY"), ("CLUSTER BY",), ("CLUSTER", "BY"))
"""How a table is stored, in the tokens of sqlglot."""


class _StatementWords:
    """The tokens of a statement, from the left."""

    def __init__(self, sql: str, tokens: list[Token]) -> None:
        self._sql, self._tokens = sql, tokens

    @property
    def start(self) -> int:
        """Where the next token starts."""
        return self._tokens[0].start if self._tokens else len(self._sql)

    def take(self, *words: str) -> bool:
        """Whether these words come next; they are then behind."""
        if [each.text.upper() for each in self._tokens[: len(words)]] != list(words):
            return False
        self._tokens = self._tokens[len(words) :]
        return True

    def comes(self, word: str) -> bool:
        """Whether a word comes next."""
        return bool(self._tokens) and self._tokens[0].text.upper() == word

    def name(self) -> str:
        """The name that comes next."""
        if not self._tokens or not self._tokens[0].text.strip():
            raise self.error("CREATE VIEW needs a name")
        parts = [self._tokens.pop(0).text]
        while self.take(".") and self._tokens:
            parts.append(self._tokens.pop(0).text)
        return ".".join(parts)

    def text(self) -> str:
        """The string that comes next."""
        if not self._tokens or self._tokens[0].token_type is not TokenType.STRING:
            raise self.error("expected a text in quotes")
        token, *self._tokens = self._tokens
        return token.text

    def brackets(self) -> list[Token]:
        """The tokens between the brackets that come next."""
        if not self.take("("):
            raise self.error("expected (")
        inside, depth = list[Token](), 1
        while self._tokens:
            token, *self._tokens = self._tokens
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
            if not depth:
                return inside
            inside.append(token)
        raise self.error("expected )")

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The names and values in the brackets that come next: `('name' = 'value', ...)`."""
        return tuple(self._pair_of_tokens(part) for part in self._list_parts())

    def column_names(self) -> tuple[str, ...]:
        """The columns in the brackets that come next; types and comments are those of the query."""
        parts = self._list_parts()
        for part in parts:
            if part[0].text.upper() in ("CONSTRAINT", "PRIMARY", "FOREIGN", "CHECK"):
                problem = f'"{part[0].text}" in the columns of a view'
                raise UnsupportedError(f"{problem} is not supported", self._sql, part[0].start)
        return tuple(part[0].text for part in parts)

    def _list_parts(self) -> list[list[Token]]:
        """What stands between the commas of the brackets that come next."""
        parts: list[list[Token]] = [[]]
        depth = 0
        for token in self.brackets():
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
            if token.token_type is TokenType.COMMA and not depth:
                parts.append([])
            else:
                parts[-1].append(token)
        return [part for part in parts if part]

    def _pair_of_tokens(self, tokens: list[Token]) -> tuple[str, str]:
        names = [each.text for each in tokens if each.token_type is not TokenType.EQ]
        if len(names) < 2:
            raise ParseError("expected 'name' = 'value'", self._sql, tokens[0].start)
        return "".join(names[:-1]), names[-1]

    def error(self, problem: str) -> ParseError:
        """An error at the next token."""
        return ParseError(problem, self._sql, self.start)

    def unsupported(self) -> ParseError:
        """A refusal of what stands between the name and AS."""
        if not self._tokens:
            return self.error("CREATE VIEW needs AS and a query after the name")
        problem = f'"{self._tokens[0].text}" between the name of a view and AS'
        return UnsupportedError(f"{problem} is not supported", self._sql, self.start)
