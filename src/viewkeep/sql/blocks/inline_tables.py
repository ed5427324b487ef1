"""Common tables of a subquery as subqueries in its FROM, where they may read the query around."""

from collections.abc import Mapping

from sqlglot import exp

_Tables = Mapping[str, exp.CTE]


def inline_common_tables(query: exp.Expr) -> exp.Expr | None:
    """The query without its WITH clause; None where it has none, or where that could mean another
    query: tables that nothing reads would no longer be checked, and a name of a common table might
    mean something else at the place where the table is read.

    >>> from sqlglot import parse_one
    >>> query = parse_one("WITH c AS (SELECT a FROM t) SELECT max(x.a) FROM c AS x")
    >>> print(inline_common_tables(query).sql())
    SELECT MAX(x.a) FROM (SELECT a FROM t) AS x
    """
    clause = query.args.get("with_")
    if clause is None or clause.args.get("recursive"):
        return None
    tables: dict[str, exp.CTE] = {}
    names = [table.alias.lower() for table in clause.expressions]
    read_names: set[str] = set()
    for place, table in enumerate(clause.expressions):
        if _reads(table.this) & set(names[place + 1 :]):
            return None
        inside = _with_tables_in_from(table.this, tables, read_names)
        if inside is None:
            return None
        complete = table.copy()
        complete.set("this", inside)
        tables[names[place]] = complete
    bare = query.copy()
    bare.set("with_", None)
    inlined = _with_tables_in_from(bare, tables, read_names)
    return inlined if len(tables) == len(names) and read_names >= set(names) else None


def _with_tables_in_from(query: exp.Expr, tables: _Tables, read: set[str]) -> exp.Expr | None:
    """The query with common tables in place of their names, which are noted; None where a name
    would mean something else."""
    copy = query.copy()
    for place in list(copy.find_all(exp.Table)):
        name = place.name.lower()
        if name not in tables or len(place.parts) > 1:
            continue
        nearer = _names_defined_around(place)
        if name in nearer:
            continue
        if nearer & _reads(tables[name].this) or not _is_in_from_only(place):
            return None
        read.add(name)
        place.replace(_subquery_of_table(tables[name], place))
    return copy


def _subquery_of_table(table: exp.CTE, place: exp.Table) -> exp.Subquery:
    """The query of a common table, with the name and all else that it has in FROM."""
    columns = place.alias_column_names or table.alias_column_names
    alias = exp.TableAlias(
        this=exp.to_identifier(place.alias or place.name),
        columns=[exp.to_identifier(name) for name in columns],
    )
    parts = {name: value for name, value in place.args.items() if name not in ("this", "alias")}
    return exp.Subquery(this=table.this.copy(), alias=alias, **parts)


def _reads(query: exp.Expr) -> set[str]:
    return {table.name.lower() for table in query.find_all(exp.Table)}


def _names_defined_around(place: exp.Table) -> set[str]:
    """The common tables of the queries between a table and the one that all is in."""
    names: set[str] = set()
    around = place.parent
    while around is not None:
        clause = around.args.get("with_")
        names |= {each.alias.lower() for each in clause.expressions} if clause else set()
        around = around.parent
    return names


def _is_in_from_only(place: exp.Table) -> bool:
    """Whether no columns are in sight but those around the whole query: in FROM, or in FROM of a
    subquery there, and not in an expression or a LATERAL one."""
    part: exp.Expr = place
    while part.parent is not None:
        around = part.parent
        if isinstance(around, exp.Join) and part.arg_key != "this":
            return False
        if isinstance(around, exp.Select) and part.arg_key not in ("from_", "joins", "with_"):
            return False
        known = (exp.From, exp.Join, exp.Select, exp.Subquery, exp.SetOperation, exp.CTE, exp.With)
        if not isinstance(around, (*known, exp.Table, exp.Paren)):
            return False
        part = around
    return True
