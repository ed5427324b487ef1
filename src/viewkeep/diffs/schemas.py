"""Which diffs of base tables a view wants (id_based_ivm, section 5): one insert, one delete, and an
update for each set of columns that some condition reads, and for the rest."""

from collections.abc import Iterable, Mapping

from viewkeep.diffs.caches import caches
from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema, base_diff_name
from viewkeep.diffs.passes.identify import IdPlan
from viewkeep.diffs.script import BaseDiff
from viewkeep.query.algebra import (
    AntiJoin,
    GroupBy,
    Join,
    Node,
    Project,
    Scan,
    Select,
    SemiJoin,
    Unnest,
    Values,
    Window,
)
from viewkeep.query.clock import CLOCK
from viewkeep.query.columns_read import needed_columns
from viewkeep.query.expressions import columns_of
from viewkeep.query.tables import Table
from viewkeep.query.traversal import inputs_of


def conditional_sets(plan: IdPlan, table: str) -> list[frozenset[str]]:
    """For each operator with a condition on columns of the table: those columns, keys left out."""
    sets: dict[frozenset[str], None] = {}
    for node in plan.nodes:
        reads = _condition_reads(node)
        for side in inputs_of(node) if reads else ():
            origins = _column_origins(side)
            own = frozenset(c for name in reads for t, c in origins.get(name, ()) if t == table)
            own -= set(_table_of_plan(plan, table).key)
            if own:
                sets[own] = None
    return list(sets)


def update_sets(plan: IdPlan, table: str) -> list[frozenset[str]]:
    """The conditional sets, and the columns that the view reads but no condition does; a change of
    a column that it does not read does not concern it."""
    conditional = conditional_sets(plan, table)
    key = _table_of_plan(plan, table).key
    rest = _columns_read(plan, table).difference(key, *conditional)
    return [*conditional, rest] if rest else conditional


def _columns_read(plan: IdPlan, table: str) -> frozenset[str]:
    needs = needed_columns(plan.root, caches(plan, tuple_based=False))
    return frozenset(
        name.removeprefix(f"{node.alias}.")
        for node in plan.nodes
        if isinstance(node, Scan) and node.name == table
        for name in needs[node]
    )


def base_diffs(
    plan: IdPlan, changes: Mapping[str, Iterable[tuple[str, frozenset[str]]]]
) -> tuple[BaseDiff, ...]:
    """Diffs for the given kinds of changes by table; updates with the columns they may change."""
    diffs = []
    for table, kinds in changes.items():
        declared = _table_of_plan(plan, table)
        rest = tuple(c for c in declared.names if c not in declared.key)
        updates = 0
        for kind, columns in kinds:
            changed = tuple(c for c in rest if c in columns)
            schema = {
                INSERT: DiffSchema(INSERT, declared.key, (), rest, rest),
                DELETE: DiffSchema(DELETE, declared.key, rest),
                UPDATE: DiffSchema(UPDATE, declared.key, rest, rest, changed),
            }[kind]
            updates += kind == UPDATE
            number = updates if kind == UPDATE and updates > 1 else 0
            diffs.append(BaseDiff(base_diff_name(table, kind, number), table, schema))
    return tuple(diffs)


def every_change(plan: IdPlan) -> dict[str, list[tuple[str, frozenset[str]]]]:
    """All kinds of changes of all tables of the view; the clock always has one row."""
    nothing = frozenset[str]()
    return {
        table: [
            *((kind, nothing) for kind in (INSERT, DELETE) if table != CLOCK),
            *((UPDATE, columns) for columns in update_sets(plan, table)),
        ]
        for table in dict.fromkeys(node.name for node in plan.nodes if isinstance(node, Scan))
    }


def _table_of_plan(plan: IdPlan, name: str) -> Table:
    return next(n.table for n in plan.nodes if isinstance(n, Scan) and n.name == name)


def _condition_reads(node: Node) -> frozenset[str]:
    match node:
        case Select() | Join() | SemiJoin() | AntiJoin():
            return columns_of(node.condition)
        case GroupBy():
            return frozenset(node.keys)
        case Window():
            return node.reads
        case Unnest():
            return frozenset({node.column})
    return frozenset()


def _column_origins(node: Node) -> dict[str, frozenset[tuple[str, str]]]:
    """For each column, the columns of base tables that it is computed from."""
    if isinstance(node, Scan):
        return {f"{node.alias}.{c}": frozenset({(node.name, c)}) for c in node.table.names}
    if isinstance(node, Values):
        return dict.fromkeys(node.names, frozenset())
    below: dict[str, frozenset[tuple[str, str]]] = {}
    for child in inputs_of(node):
        for name, origins in _column_origins(child).items():
            below[name] = below.get(name, frozenset()) | origins
    match node:
        case Project():
            return {
                o.name: _origins_of_columns(below, columns_of(o.expression)) for o in node.outputs
            }
        case GroupBy():
            arguments = {each.name: each.reads for each in node.aggregates}
            key_sources = {key: below[key] for key in node.keys}
            return key_sources | {
                name: _origins_of_columns(below, reads) for name, reads in arguments.items()
            }
        case Window():
            return below | {
                each.name: _origins_of_columns(below, node.reads) for each in node.columns
            }
        case Unnest():
            return below | dict.fromkeys(node.elements, below[node.column])
    return below


def _origins_of_columns(
    below: Mapping[str, frozenset[tuple[str, str]]], names: Iterable[str]
) -> frozenset[tuple[str, str]]:
    return frozenset[tuple[str, str]]().union(*(below[name] for name in names))
