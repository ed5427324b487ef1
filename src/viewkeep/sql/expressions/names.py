"""What a name in an expression means: a column, a part of a struct, an alias, an outer column."""

from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeep.query.types.functions import BARE_FUNCTIONS
from viewkeep.sql.blocks.scope import Scalar, ScopeColumn
from viewkeep.sql.expressions.nested import field

if TYPE_CHECKING:
    from viewkeep.sql.expressions.translator import Translator


def column_or_alias(translator: "Translator", node: exp.Column) -> Scalar:
    """A column, a part of a struct, or an alias before."""
    alias = _lateral_alias(translator, node)
    if alias is not None:
        return alias
    column, parts = struct_path(translator, node)
    value = translator.column(resolve(translator, node) if column is None else column, node)
    for part in parts:
        value = field(translator, value, part, node)
    return value


def resolve(translator: "Translator", node: exp.Column) -> ScopeColumn:
    """The one column that a name means."""
    if node.args.get("db"):
        raise translator.source.unsupported("a column with more than one qualifier", node)
    columns = translator.scope.matches(node.table, node.name)
    if len(columns) > 1:
        candidates = ", ".join(sorted(str(column) for column in columns))
        is_of_one_table = len({column.qualifier.lower() for column in columns}) == 1
        way_out = "give one an alias" if is_of_one_table else "name its table"
        problem = f'column "{node.name}" is ambiguous ({candidates}); {way_out}'
        raise translator.source.error(problem, node)
    if not columns and not node.table:
        _refuse_word(translator, node)
    return columns[0] if columns else _outer_column(translator, node)


def plain_column(translator: "Translator", node: exp.Column) -> ScopeColumn | None:
    """The column of FROM that a name is; None for parts of structs and aliases."""
    columns = translator.scope.matches(node.table, node.name)
    is_part = struct_path(translator, node)[0] is not None
    return columns[0] if len(columns) == 1 and not is_part else None


def struct_path(translator: "Translator", node: exp.Column) -> tuple[ScopeColumn | None, list[str]]:
    """The column of a struct and the names of its parts, where a name with dots is that."""
    names = [part.name for part in node.parts]
    qualified = translator.scope.matches(*names[:2]) if len(names) > 1 else []
    columns, parts = qualified, names[2:]
    if not qualified:
        columns, parts = translator.scope.matches("", names[0]), names[1:]
    is_struct = len(columns) == 1 and columns[0].scalar.typed.type.name == "struct"
    return (columns[0], parts) if parts and is_struct else (None, [])


def _lateral_alias(translator: "Translator", node: exp.Column) -> Scalar | None:
    """The item before this one that a name means, where no column of FROM has the name."""
    if node.table or translator.scope.matches("", node.name):
        return None
    return translator.earlier.get(node.name.lower())


def _refuse_word(translator: "Translator", node: exp.Column) -> None:
    """Names that are no columns: functions without brackets, aliases of the same list."""
    name = node.name.lower()
    if name in translator.earlier:
        construct = f'"{node.name}", an alias of the same select list (a lateral column alias),'
        raise translator.source.unsupported(construct, node)
    if name in BARE_FUNCTIONS and not node.this.quoted:
        raise translator.source.unsupported(f"the non-deterministic function {name}()", node)


def _outer_column(translator: "Translator", node: exp.Column) -> ScopeColumn:
    outer = translator.scope.outer
    level = 1
    while outer is not None and not outer.matches(node.table, node.name):
        outer, level = outer.outer, level + 1
    if outer is None:
        if any(c.scalar.typed.type.parts for c in translator.scope.matches("", node.table)):
            raise translator.source.unsupported(
                f'"{node.table}.{node.name}", a field of a struct,', node
            )
        raise translator.source.error(_unknown_column(translator, node), node)
    if level > 1:
        problem = f'column "{node.name}" is more than one query further out'
        way_out = "Spark SQL reads the columns of the next query only; join the tables instead"
        raise translator.source.error(f"{problem}: {way_out}", node)
    if not translator.correlated:
        construct = "a column of the outer query outside the WHERE of a plain subquery"
        raise translator.source.unsupported(construct, node)
    columns = outer.matches(node.table, node.name)
    if len(columns) > 1:
        raise translator.source.error(f'column "{node.name}" of the outer query is ambiguous', node)
    return columns[0]


def _unknown_column(translator: "Translator", node: exp.Column) -> str:
    if not node.table and node.name.lower() in translator.later:
        problem = f'"{node.name}" is an alias of the select list, which WHERE comes before'
        return f"{problem}; repeat the expression"
    return translator.scope.unknown(node.table, node.name)
