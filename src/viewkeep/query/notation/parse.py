"""The query notation: outputs | inputs; aggregates = atoms joined by *, conditions in brackets.

Q(a, c) = R(a, b) * S(b, c)
Q(c | a, b) = E(a, b) * E(b, c) * E(c, a)
Q(a; sum(c * d), count()) = R(a, b) * S(a, c, e) * T(c, d) * [d > 3]
"""

import re
from collections.abc import Mapping

from viewkeep.errors import ParseError, QueryError, did_you_mean
from viewkeep.query.aggregates import FUNCTIONS, Aggregate
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery, columns, unsafe_head
from viewkeep.query.expressions import Expression
from viewkeep.query.notation.expressions import TokenReader, read_call_arguments, read_expression
from viewkeep.query.notation.tokens import Token

Schema = Mapping[str, int]
"""The relations that exist and how many columns each has."""


def parse(text: str, schema: Schema | None = None) -> ConjunctiveQuery:
    """Read one query; with a schema, relations and their arities are checked against it.

    >>> print(parse("Q(a,c)=R(a,b)*S(b,c)"))
    Q(a, c) = R(a, b) * S(b, c)
    """
    queries = parse_many(text, schema)
    if len(queries) != 1:
        raise ParseError(f"expected one query, found {len(queries)}", text, 0)
    return queries[0]


def parse_many(text: str, schema: Schema | None = None) -> tuple[ConjunctiveQuery, ...]:
    """Read queries one after another; `#` or `--` starts a comment, `;` may end a query."""
    if not isinstance(text, str):
        raise QueryError(f"a query is written as text, not {text!r}")
    try:
        return _read_queries(text, schema)
    except ParseError:
        if start := _SQL_START.match(text):
            raise _sql_error(text, start.start("word")) from None
        raise


_SQL_START = re.compile(
    r"(?:\s|--[^\n]*|\#[^\n]*|/\*.*?\*/|\()*+(?P<word>(?:SELECT|WITH|CREATE|FROM)\b)",
    re.IGNORECASE | re.DOTALL,
)


def _sql_error(text: str, position: int) -> ParseError:
    """The error for SQL where the notation is read."""
    return ParseError(
        "expected a query such as Q(a) = R(a, b), found SQL",
        text,
        position,
        "vk.from_sql(sql, tables) makes a query of it, and vk.maintain(sql, tables=...) keeps it",
    )


def _read_queries(text: str, schema: Schema | None) -> tuple[ConjunctiveQuery, ...]:
    reader = TokenReader(text)
    queries: list[ConjunctiveQuery] = []
    goes_on = False
    while reader.token.kind != "end":
        queries.append(_read_query(reader, schema, goes_on))
        goes_on = True
        while reader.accept(";"):
            goes_on = False
    return tuple(queries)


def _read_query(reader: TokenReader, schema: Schema | None, goes_on: bool) -> ConjunctiveQuery:
    start = reader.token
    name = reader.name("the name of a query, as in Q(a) = R(a, b)")
    head_start = reader.token
    outputs, inputs, aggregates = _read_head(reader)
    if goes_on and not reader.peek("="):
        hint = f'write "*" before it, or "=" after it if {name} is another query'
        reader.fail(f'atoms are joined with "*", found "{name}"', start, hint)
    reader.expect("=", " after the head")
    atoms, conditions = _read_body(reader, schema)
    _check_head_safe(reader, head_start, outputs + inputs, atoms)
    try:
        return ConjunctiveQuery(name, outputs, atoms, inputs, aggregates, conditions)
    except QueryError as error:
        # The query as a whole is at fault, so the place is its beginning.
        raise ParseError(str(error), reader.text, start.position) from None


def _check_head_safe(
    reader: TokenReader, head_start: Token, free: tuple[str, ...], atoms: tuple[Atom, ...]
) -> None:
    bound = {variable for atom in atoms for variable in atom.variables}
    for variable in free:
        if variable not in bound:
            reader.fail(unsafe_head(variable, atoms), at=reader.find(variable, head_start))


def _read_head(
    reader: TokenReader,
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Aggregate, ...]]:
    if not reader.accept("("):
        return (), (), ()
    reader.accept("·")
    outputs = _read_variables(reader, "|", ";", ")")
    inputs = _read_variables(reader, ";", ")") if reader.accept("|") else ()
    aggregates = _read_aggregates(reader) if reader.accept(";") else ()
    reader.expect(")", " to close the head")
    return outputs, inputs, aggregates


def _read_variables(reader: TokenReader, *ends: str) -> tuple[str, ...]:
    variables: list[str] = []
    while not reader.peek(*ends):
        if variables:
            reader.expect(",", f' or "{ends[-1]}"')
        if reader.token.kind in ("number", "string"):
            reader.fail("expected a variable: write constants as conditions, R(a, b) * [b = 3]")
        variables.append(reader.name("a variable"))
    return tuple(variables)


def _read_aggregates(reader: TokenReader) -> tuple[Aggregate, ...]:
    aggregates = [_read_aggregate(reader)]
    while reader.accept(","):
        aggregates.append(_read_aggregate(reader))
    return tuple(aggregates)


def _read_aggregate(reader: TokenReader) -> Aggregate:
    start = reader.token
    function = reader.name("an aggregate").lower()
    if function not in FUNCTIONS:
        names = ", ".join(FUNCTIONS)
        reader.fail(
            f'unknown aggregate "{function}" ({names}){did_you_mean(function, FUNCTIONS)}', at=start
        )
    reader.expect("(")
    if function == "count" and reader.accept("*"):
        reader.expect(")")
        return Aggregate(function)
    arguments = read_call_arguments(reader)
    if len(arguments) > 1 or (not arguments and function != "count"):
        reader.fail(f"{function}() takes one argument", at=start)
    return Aggregate(function, *arguments)


def _read_body(
    reader: TokenReader, schema: Schema | None
) -> tuple[tuple[Atom, ...], tuple[Expression, ...]]:
    atoms: list[Atom] = []
    conditions: list[Expression] = []
    while True:
        if reader.accept("["):
            conditions.append(read_expression(reader))
            reader.expect("]", " to close the condition")
        else:
            atoms.append(_read_atom(reader, schema, atoms))
        if reader.peek(",", "and", "["):
            reader.fail('atoms are joined with "*"')
        if not reader.accept("*", "·"):
            return tuple(atoms), tuple(conditions)


def _read_atom(reader: TokenReader, schema: Schema | None, earlier: list[Atom]) -> Atom:
    start = reader.token
    relation = reader.name("an atom, as in R(a, b)")
    reader.expect("(", f" and the variables of {relation}")
    variables = _read_variables(reader, ")")
    reader.expect(")")
    atom = Atom(relation, variables)
    arities = {a.relation: len(a.variables) for a in earlier} if schema is None else schema
    if schema is not None and relation not in schema:
        hint = did_you_mean(relation, schema)
        reader.fail(f'unknown relation "{relation}" ({", ".join(schema)}){hint}', at=start)
    if arities.get(relation, len(variables)) != len(variables):
        reader.fail(
            f"{atom} has {columns(len(variables))}, but {relation} has {arities[relation]}",
            at=start,
        )
    return atom
