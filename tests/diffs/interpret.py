"""Delta scripts run in Python on small relations: much faster there than a database is.

Rows are tuples in the order of a relation's columns. Scalar expressions are the package's own;
everything else is written here once more, as plainly as it can be.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.diffs.interpret_aggregates import of_several, of_values
from viewkeep.diffs.model import DELETE, INSERT, DiffSchema
from viewkeep.diffs.script import Apply, Script
from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from viewkeep.query.evaluate.casts import cast_to
from viewkeep.query.evaluate.compile import compile_condition, compile_expression
from viewkeep.query.evaluate.windows import window
from viewkeep.query.expressions import Call, Column, Expression, conjuncts
from viewkeep.query.types.inference import find_field

Row = tuple[Any, ...]
Rows = list[Row]
Relations = Mapping[tuple[str, str] | str, Iterable[Row]]
"""Tables by (name, state), all else by name."""


class ConflictError(AssertionError):
    """Two rows of a diff set the same row differently."""


def evaluate(node: Node, relations: Relations) -> Rows:
    """The rows of a query, with duplicates."""
    done: dict[int, Rows] = {}

    def rows(node: Node) -> Rows:
        if id(node) not in done:
            done[id(node)] = _evaluate(node, rows, relations)
        return done[id(node)]

    return rows(node)


def _evaluate(node: Node, rows: Callable[[Node], Rows], relations: Relations) -> Rows:
    match node:
        case Scan():
            return list(relations[node.name, node.state])
        case Stored():
            return list(relations[node.name])
        case Values():
            return [tuple([compile_expression(each, ())(()) for each in row]) for row in node.rows]
        case Select():
            holds = compile_condition([node.condition], node.names)
            return [row for row in rows(node.child) if holds(row)]
        case Project():
            values = [compile_expression(o.expression, node.child.names) for o in node.outputs]
            return [tuple([value(row) for value in values]) for row in rows(node.child)]
        case Join():
            meets = _meets(node, rows(node.left), rows(node.right))
            return [left + right for left, met in meets for right in met]
        case SemiJoin():
            return [left for left, met in _meets(node, rows(node.left), rows(node.right)) if met]
        case AntiJoin():
            meets = _meets(node, rows(node.left), rows(node.right))
            return [left for left, met in meets if not met]
        case UnionAll():
            return [row for each in node.inputs for row in rows(each)]
        case Distinct():
            return list(dict.fromkeys(rows(node.child)))
        case GroupBy():
            return _groups(node, rows(node.child))
        case Unnest():
            return _unnested(node, rows(node.child))
        case Window():
            return window(node, rows(node.child))


def _unnested(node: Unnest, rows: Rows) -> Rows:
    """Each row beside each of its elements; a map has pairs."""
    place = node.child.names.index(node.column)
    made = []
    for row in rows:
        values = row[place] if row[place] else [None] if node.outer else []
        for position, value in enumerate(values):
            if not row[place]:
                made.append((*row, *[None] * len(node.elements)))
            elif len(node.elements) == 3:
                made.append((*row, position, value[0], value[1]))
            else:
                made.append((*row, position, value))
    return made


def _meets(node: Join | SemiJoin | AntiJoin, left: Rows, right: Rows) -> Iterable[tuple[Row, Rows]]:
    """Every left row with the right rows that it meets; equal columns are looked up."""
    parts = conjuncts(node.condition)
    equal = [pair for pair in (_equality(part, node) for part in parts) if pair is not None]
    holds = compile_condition([node.condition], (*node.left.names, *node.right.names))
    index: dict[Row, Rows] = {}
    for row in right:
        index.setdefault(tuple([row[j] for _, j in equal]), []).append(row)
    for row in left:
        near = index.get(tuple([row[i] for i, _ in equal]), [])
        yield row, [other for other in near if holds(row + other)]


def _equality(part: Expression, node: Join | SemiJoin | AntiJoin) -> tuple[int, int] | None:
    left, right = node.left.names, node.right.names
    match part:
        case Call("=" | "<=>", (Column(a), Column(b))) if a in left and b in right:
            return left.index(a), right.index(b)
        case Call("=" | "<=>", (Column(b), Column(a))) if a in left and b in right:
            return left.index(a), right.index(b)
    return None


def _groups(node: GroupBy, rows: Rows) -> Rows:
    names = node.child.names
    places = [names.index(key) for key in node.keys]
    groups: dict[Row, Rows] = {} if node.keys else {(): []}
    for row in rows:
        groups.setdefault(tuple([row[i] for i in places]), []).append(row)
    computed = [_aggregate(node, each) for each in node.aggregates]
    return [key + tuple([value(found) for value in computed]) for key, found in groups.items()]


def _aggregate(node: GroupBy, aggregate: AggregateColumn) -> Callable[[Rows], Any]:
    if aggregate.argument is None:
        return len
    argument = compile_expression(aggregate.argument, node.child.names)
    typed = cast_to(find_field(aggregate.name, node.schema).type)
    if aggregate.others:
        others = [compile_expression(each, node.child.names) for each in aggregate.others]
        return lambda rows: of_several(aggregate, [(argument(r), others[0](r)) for r in rows])

    def compute(rows: Rows) -> Any:
        values = [v for v in map(argument, rows) if v is not None]
        match aggregate.function:
            case "count":
                return len(values)
            case "collect_list":
                return tuple(sorted(values))
            case "collect_set":
                return tuple(sorted(set(values)))
        return of_values(aggregate.function, values, typed) if values else None

    return compute


# --- scripts --------------------------------------------------------------------------------------


def run_script(
    script: Script,
    relations: Relations,
    kept: Mapping[str, Rows],
    applies: Sequence[Apply] | None = None,
) -> tuple[dict[str, Rows], dict[str, Rows]]:
    """The caches and the view after a refresh, and everything that was computed on the way.

    `applies` gives the changes another order than the script does.
    """
    computed: dict[str, Rows] = {}
    for statement in script.computes():
        known = {**relations, **kept, **computed}
        computed[statement.name] = evaluate(statement.query, known)
    after = dict(kept)
    targets = {m.name: m for m in script.materialized}
    for each in script.applies() if applies is None else applies:
        target = targets[each.target]
        names, ids = target.definition.names, target.ids
        changed = apply_diff(after[each.target], names, ids, each.schema, computed[each.diff])
        after[each.target] = changed
    return after, computed


def apply_diff(
    rows: Rows, names: Sequence[str], ids: Sequence[str], schema: DiffSchema, diff: Rows
) -> Rows:
    """The rows of a relation after one diff (id_based_ivm, section 2)."""
    meant = ids if schema.kind == INSERT else schema.ids
    places = [names.index(name) for name in meant]
    told = [dict(zip(schema.columns, row, strict=True)) for row in diff]
    keys = [tuple([row[schema.value_after(name)] for name in meant]) for row in told]
    if schema.kind == DELETE:
        gone = set(keys)
        return [row for row in rows if tuple([row[i] for i in places]) not in gone]
    sets = names if schema.kind == INSERT else schema.changed
    new: dict[Row, dict[str, Any]] = {}
    for key, row in zip(keys, told, strict=True):
        values = {name: row[schema.value_after(name)] for name in sets}
        if new.setdefault(key, values) != values:
            raise ConflictError(f"{schema}: two rows of the diff set {key} differently")
    if schema.kind == INSERT:
        others = [row for row in rows if tuple([row[i] for i in places]) not in new]
        return others + [tuple([values[name] for name in names]) for values in new.values()]
    nothing: dict[str, Any] = {}
    return [
        tuple(
            [
                new.get(tuple([row[i] for i in places]), nothing).get(n, v)
                for n, v in zip(names, row, strict=True)
            ]
        )
        for row in rows
    ]
