"""`*` among the arguments of a call: all columns in sight, or those of a table or a struct."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from viewkeep.sql.blocks.scope import Scalar
from viewkeep.sql.expressions.nested import field

if TYPE_CHECKING:
    from viewkeep.sql.expressions.translator import Translator


def without_stars(translator: "Translator", nodes: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Arguments with the columns that their stars stand for."""
    return [column for node in nodes for column in _columns_of_star(translator, node)]


def _columns_of_star(translator: "Translator", node: exp.Expr) -> Sequence[exp.Expr]:
    star = node.this if isinstance(node, exp.Column) else node
    if not isinstance(star, exp.Star) or any(star.args.values()):
        return [node]
    qualifier = node.table if isinstance(node, exp.Column) else ""
    columns = translator.scope.visible(qualifier)
    found = []
    for column in columns:
        named = exp.column(column.name, table=column.qualifier or None, quoted=True)
        named.meta.update(star.meta)
        found.append(named)
    return found or [node]


def parts_of_struct(translator: "Translator", star: exp.Column) -> list[tuple[str, Scalar]] | None:
    """The names and values that `a.*` or `t.a.*` stands for, where it names a struct."""
    names = star.parts[:-1]
    column = exp.Column(this=names[-1].copy())
    if len(names) == 2:
        column.set("table", names[0].copy())
    if len(names) > 2 or not translator.scope.matches(column.table, column.name):
        return None
    column.meta.update(star.meta)
    value = translator.translate(column)
    if value.typed.type.name != "struct":
        return None
    parts = [part.name for part in value.typed.type.parts]
    return [(name, field(translator, value, name, star)) for name in parts]
