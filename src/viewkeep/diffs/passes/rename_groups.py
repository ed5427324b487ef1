"""A group-by on top with the names of the view, which it may put into another order."""

from dataclasses import replace

from viewkeep.diffs.optimize.merge_projections import merge_projections
from viewkeep.diffs.rules.build import project
from viewkeep.query.algebra import AggregateColumn, GroupBy, Node, Project
from viewkeep.query.expressions import Column


def rename_groups(view: Node) -> Node:
    """A group-by whose columns are only renamed takes the new names itself, so that what it keeps
    is the view, and not another copy of it."""
    match view:
        case Project(child=GroupBy(keys=keys, aggregates=aggregates) as group, outputs=outputs):
            plain = {o.expression.name: o.name for o in outputs if isinstance(o.expression, Column)}
            if len(plain) < len(outputs) or not set(plain) <= set(group.names):
                return view
            new_names = set(plain.values())
            names = {name: plain.get(name, name) for name in group.names}
            clash = any(n in new_names and n not in plain for n in group.names)
            if clash or len(set(names.values())) < len(names):
                return view
            renaming = {names.get(c, c): Column(c) for c in keys}
            rest = [c for c in group.child.names if c not in keys and c not in renaming]
            arguments = _argument_columns(aggregates)
            if arguments & set(keys) or arguments - set(rest):
                return view
            columns = renaming | {c: Column(c) for c in rest if c in arguments}
            child = project(group.child, columns) if columns else group.child
            renamed = tuple(replace(a, name=names[a.name]) for a in aggregates)
            return merge_projections(GroupBy(child, tuple(names[k] for k in keys), renamed))
    return view


def _argument_columns(aggregates: tuple[AggregateColumn, ...]) -> set[str]:
    return {column for each in aggregates for column in each.reads}
