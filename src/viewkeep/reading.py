"""From text to queries: what every command reads.

Text that starts with SELECT, WITH or CREATE is SQL; anything else is the query notation. Each
statement is read on its own, so that one mistake does not hide the others.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from viewkeep.errors import ParseError, QueryError, ViewkeepError, did_you_mean
from viewkeep.query.algebra import Node as Node  # the command line names it too
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Constraints, ForeignKey, Key
from viewkeep.query.notation.parse import parse_many
from viewkeep.query.tables import Table as Table  # the command line names it too

Tables = Mapping[str, Table]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a text: the text up to its end, blanked before its start.

    So every position in it is a position in the whole text.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class UnclassifiedView:
    """A valid SQL view that is not a conjunctive query, and the construct that prevents it."""

    name: str
    tree: Node
    reason: ViewkeepError


@dataclass(frozen=True, slots=True)
class FailedStatement:
    """A statement that is not a valid query."""

    name: str
    error: ViewkeepError


Read = ConjunctiveQuery | UnclassifiedView | FailedStatement


def read_constraints(
    fds: Sequence[str] = (),
    keys: Sequence[str] = (),
    foreign_keys: Sequence[str] = (),
    degrees: Sequence[str] = (),
    static: Sequence[str] = (),
    insert_only: bool = False,
) -> Constraints:
    """The constraints that a user states beside the query."""
    return Constraints.parse(fds, keys, foreign_keys, degrees, static, insert_only)


def read_tables(schema: str) -> Tables:
    """The tables of CREATE TABLE statements."""
    from viewkeep.sql import read_schema  # loads sqlglot, which the notation does not need

    return read_schema(schema)


def read_queries(text: str, tables: Tables) -> Iterator[Read]:
    """Every query of a text, in SQL or in the notation."""
    if not is_sql(text):
        if misspelt := _misspelt_sql(text):
            yield FailedStatement("Q", misspelt)
            return
        for statement in notation_statements(text):
            yield from read_notation(statement, tables)
        return
    tables = with_created_tables(text, tables)
    views = [one for one in sql_statements(text) if not _CREATE_TABLE.match(one.text)]
    if [view.name for view in views] == ["Q1"]:
        views = [replace(views[0], name="Q")]
    yield from (read_sql(view, tables) for view in views)


def with_created_tables(text: str, tables: Tables) -> Tables:
    """The tables, and those that SQL text creates beside its views."""
    if not is_sql(text):
        return tables
    created = [one for one in sql_statements(text) if _CREATE_TABLE.match(one.text)]
    return {**tables, **read_tables(_together(created))} if created else tables


def read_query(text: str, tables: Tables) -> ConjunctiveQuery:
    """The only query of a text.

    >>> print(read_query("Q(a) = R(a, b)", {}))
    Q(a) = R(a, b)
    """
    match list(read_queries(text, tables)):
        case []:
            raise QueryError("there is no query in the text")
        case [FailedStatement(_, error)] | [UnclassifiedView(_, _, error)]:
            raise error
        case [ConjunctiveQuery() as query]:
            return query
        case several:
            names = ", ".join(each.name for each in several)
            raise QueryError(f"one query is expected, but the text has {len(several)}: {names}")


def read_view(text: str, tables: Tables) -> Node:
    """The operators of the only SQL view of a text, also of one that is a conjunctive query."""
    from viewkeep.sql import parse_view  # loads sqlglot, see above

    if not is_sql(text):
        raise QueryError("a delta script needs a view in SQL, over tables with keys")
    [view] = [one for one in sql_statements(text) if not _CREATE_TABLE.match(one.text)]
    return parse_view(view.text, with_created_tables(text, tables))


def is_sql(text: str) -> bool:
    """Whether a text starts, after comments, like SQL.

    >>> is_sql("-- cost\\nselect 1"), is_sql("Q(a) = R(a)")
    (True, False)
    """
    return _SQL_START.match(text) is not None


def _misspelt_sql(text: str) -> ParseError | None:
    """The error for text like `selct city from customers`: no query starts with two words."""
    words = _TWO_WORDS.match(text)
    hint = did_you_mean(words["first"].upper(), _SQL_WORDS) if words else ""
    if not words or not hint:
        return None
    problem = f'expected a query or SQL, found "{words["first"]}"{hint}'
    return ParseError(problem, text, words.start("first"))


def read_notation(statement: Statement, tables: Tables) -> Iterator[Read]:
    """The queries of one statement, known to satisfy the keys of the tables."""
    arities = {name: len(table.columns) for name, table in tables.items()}
    try:
        for query in parse_many(statement.text, arities or None):
            yield _with_keys(query, tables)
    except ViewkeepError as error:
        yield FailedStatement(statement.name, error)


def read_sql(statement: Statement, tables: Tables) -> Read:
    """The conjunctive query of one view, or what it is instead."""
    from viewkeep.sql import from_sql, parse_view  # loads sqlglot, see above

    try:
        if not tables:
            raise QueryError(
                "SQL needs its tables: declare them with CREATE TABLE, in the same file or "
                "in the file of --schema"
            )
        tree = parse_view(statement.text, tables)
    except ViewkeepError as error:
        return FailedStatement(statement.name, error)
    try:
        return replace(from_sql(statement.text, tables), name=statement.name)
    except QueryError as reason:
        return UnclassifiedView(statement.name, tree, reason)


def _with_keys(query: ConjunctiveQuery, tables: Tables) -> ConjunctiveQuery:
    used = {name: table for name, table in tables.items() if name in query.relations}
    keys = tuple(Key(name, table.key) for name, table in used.items() if table.key)
    foreign_keys = tuple(
        ForeignKey(name, reference.columns, reference.table, reference.referenced_columns)
        for name, table in used.items()
        for reference in table.foreign_keys
        if reference.table in used
    )
    columns = tuple((name, table.names) for name, table in used.items())
    declared = Constraints(keys=keys, foreign_keys=foreign_keys)
    return replace(query, columns=columns).with_constraints(declared)


def notation_statements(text: str) -> Iterator[Statement]:
    """The text cut where a query may start, so that one mistake stays in its part.

    A part starts at a line that is no further indented than the first one, unless that line or
    the one before shows that it goes on.
    """
    starts: list[int] = []
    indent, before = 0, ""
    for line in re.finditer(r"[^\n]+", text):
        content = _LINE_COMMENT.sub("", line.group()).rstrip()
        own_indent = len(content) - len(content.lstrip())
        if not content:
            continue
        goes_on = before.endswith(_OPEN_ENDS) or content.lstrip().startswith(_CONTINUATIONS)
        if not starts or (own_indent <= indent and not goes_on):
            starts.append(line.start())
            indent = indent if starts[1:] else own_indent
        before = content
    for number, (start, end) in enumerate(pairwise([*starts, len(text)]), start=1):
        name = _FIRST_NAME.match(text, start)
        yield _cut(text, start, end, name.group(1) if name else f"Q{number}")


def sql_statements(text: str) -> Iterator[Statement]:
    """The statements between semicolons, named by `-- name: cost`, CREATE VIEW or their number."""
    start, number = 0, 0
    ends = [piece.start() for piece in _SQL_PIECE.finditer(text) if piece.group() == ";"]
    for end in [*ends, len(text)]:
        if _SQL_GAP.fullmatch(text, start, end) is None:
            number += not _CREATE_TABLE.match(text, start, end)
            name_comment = _NAME_COMMENT.search(text, start, end)
            view = _CREATE_VIEW.match(text, start, end)
            name = name_comment or view
            body = view.end() if view else start
            yield _cut(text, body, end, name.group("name").strip("`") if name else f"Q{number}")
        start = end + 1


def _together(statements: Sequence[Statement]) -> str:
    """Statements as one text, each still in its place."""
    text = statements[0].text
    for statement in statements[1:]:
        text = f"{text};{statement.text[len(text) + 1 :]}"
    return text


def _cut(text: str, start: int, end: int, name: str) -> Statement:
    return Statement(name, re.sub(r"[^\n]", " ", text[:start]) + text[start:end])


_GAP = r"(?:\s|--[^\n]*|\#[^\n]*|/\*.*?\*/)*+"
_FLAGS = re.IGNORECASE | re.DOTALL
_SQL_GAP = re.compile(_GAP, _FLAGS)
_SQL_START = re.compile(
    rf"{_GAP}[\s(]*(?:(?:SELECT|WITH)\b|(?:CREATE|INSERT|UPDATE|DELETE|MERGE|DROP|ALTER)\s+\w)",
    _FLAGS,
)
_SQL_WORDS = ("SELECT", "WITH", "CREATE")
_TWO_WORDS = re.compile(rf"{_GAP}(?P<first>[^\W\d]\w*)\s+[\w*`\"']", _FLAGS)
_SQL_PIECE = re.compile(
    r"""'(?:\\.|[^'\\])*+'|"(?:\\.|[^"\\])*+"|`[^`]*+`|--[^\n]*|/\*.*?\*/|.""", re.DOTALL
)
_CREATE_TABLE = re.compile(rf"{_GAP}CREATE\s+(?:\w+\s+)*?TABLE\b", _FLAGS)
_CREATE_VIEW = re.compile(
    rf"{_GAP}CREATE\s+(?:\w+\s+)*?VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[\w.]+|`[^`]+`)\s+AS\b",
    _FLAGS,
)
_NAME_COMMENT = re.compile(r"--[ \t]*name:[ \t]*(?P<name>\S+)", re.IGNORECASE)
_LINE_COMMENT = re.compile(r"#.*|--.*")
_FIRST_NAME = re.compile(r"\s*([^\W\d]\w*)")
_OPEN_ENDS = ("*", "=", ",", "(", "[", "|", "·")
_CONTINUATIONS = (*_OPEN_ENDS, ")", "]", ";")
