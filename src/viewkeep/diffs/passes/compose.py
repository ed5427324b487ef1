"""Pass 3: from instantiated rules to a script (id_based_ivm, section 4).

Subviews become queries over tables, caches and the view. A restriction of a subview to some keys
is pushed down to what it is made of, so that only rows with those keys are read.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from viewkeep.diffs.caches import caches
from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema, post
from viewkeep.diffs.passes.instantiate import RuleDag
from viewkeep.diffs.rules.build import (
    KEY,
    antijoin,
    join_on,
    keep,
    key_columns,
    on_columns,
    project,
    union_all,
)
from viewkeep.diffs.rules.common import (
    AFTER,
    NEW,
    POST,
    PRE,
    Change,
    Piece,
    Subview,
    insert_rows,
)
from viewkeep.diffs.script import Apply, Compute, Materialized, Script, Statement
from viewkeep.query.algebra import (
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
    Window,
)
from viewkeep.query.expressions import Call, Column, Expression, conjunction, conjuncts
from viewkeep.query.traversal import inputs_of, rewrite_tree, walk, with_children
from viewkeep.query.types.inference import find_field

VIEW = "view"


def compose(dag: RuleDag, cache_names: Mapping[Node, str] | None = None) -> Script:
    """The statements of all rules, then the changes of caches and view; `cache_names` has further
    operators of the plan to cache, and the names of their caches."""
    return _Composer(dag, cache_names or {}).script()


class _Composer:
    def __init__(self, dag: RuleDag, cache_names: Mapping[Node, str]) -> None:
        self._dag, self._plan = dag, dag.plan
        self._nodes = dag.plan.nodes
        reasons = dict.fromkeys(cache_names, "asked for") | caches(dag.plan, dag.tuple_based)
        self._names = {node: f"cache_{self._nodes.index(node)}" for node in reasons}
        self._names |= cache_names
        self._names[dag.plan.root] = VIEW
        self._why = reasons
        self._changed = {n for n, node in enumerate(self._nodes) if self._is_changed(node)}
        self._states: dict[tuple[int, str], Node] = {}

    def script(self) -> Script:
        cached_nodes = [node for node in self._nodes if node in self._names]
        stored = [self._materialized_node(node) for node in cached_nodes]
        statements: list[Statement] = [
            Compute(piece.name, self._spelled_out_query(piece.query), _piece_schema(piece))
            for piece in self._dag.pieces
        ]
        for node in cached_nodes:
            for change in self._dag.changes(self._nodes.index(node)):
                statements.append(Apply(change.name, self._names[node], change.schema))
        view = next(each for each in stored if each.name == VIEW)
        others = tuple(each for each in stored if each.name != VIEW)
        return Script(view, others, self._dag.diffs, tuple(statements), self._plan.visible)

    def _materialized_node(self, node: Node) -> Materialized:
        below = [self._composed_rows_from_caches(child) for child in inputs_of(node)]
        definition = with_children(node, tuple(below))
        why = self._why.get(node, "the view")
        number = self._nodes.index(node)
        return Materialized(self._names[node], definition, self._plan.ids[node], why, number)

    def _composed_rows_from_caches(self, node: Node) -> Node:
        """The rows of an operator as they are kept, or from what is kept below."""
        if node in self._names:
            return Stored(self._names[node], node.schema)
        return with_children(node, tuple(map(self._composed_rows_from_caches, inputs_of(node))))

    def _is_changed(self, node: Node) -> bool:
        tables = {diff.table for diff in self._dag.diffs}
        return any(isinstance(each, Scan) and each.name in tables for each in walk(node))

    # --- subviews -------------------------------------------------------------------------------

    def _spelled_out_query(self, query: Node) -> Node:
        """The query with its subviews spelled out."""

        def spell_out(node: Node) -> Node:
            match node:
                case Subview() if node.state == AFTER:
                    return self._rows_with_changes(Stored(node.rows, node.schema), node.operator)
                case Subview():
                    return self._rows_in_state(node.operator, node.state)
                case SemiJoin():
                    return push_down(node)
            return node

        return rewrite_tree(query, spell_out)

    def _rows_in_state(self, number: int, state: str) -> Node:
        """The rows of an operator before or after the changes, made once."""
        if (number, state) not in self._states:
            self._states[number, state] = self._new_rows_in_state(number, state)
        return self._states[number, state]

    def _new_rows_in_state(self, number: int, state: str) -> Node:
        node = self._nodes[number]
        if node in self._names and state != NEW:
            rows = Stored(self._names[node], node.schema)
            return rows if state == PRE else self._rows_with_changes(rows, number)
        if isinstance(node, Scan):
            # What has not changed is read as it is now.
            before = state == PRE and number in self._changed
            return replace(node, state=PRE if before else POST)
        below_state = POST if state == NEW else state
        below = [
            self._rows_in_state(self._nodes.index(child), below_state) for child in inputs_of(node)
        ]
        return with_children(node, tuple(below))

    def _rows_with_changes(self, rows: Node, number: int) -> Node:
        """Kept rows with their changes: deletes, then updates, then inserts."""
        ids, names = self._plan.ids[self._nodes[number]], rows.names
        changes = self._dag.changes(number)
        for change in (c for c in changes if c.schema.kind == DELETE):
            rows = antijoin(rows, change.leaf, change.schema.ids)
        for change in (c for c in changes if c.schema.kind == UPDATE):
            rows = _updated_by_change(rows, change)
        inserts = [insert_rows(c, names) for c in changes if c.schema.kind == INSERT]
        if inserts:
            new = inserts[0] if len(inserts) == 1 else Distinct(union_all(inserts))
            rows = union_all([antijoin(rows, new, ids), new])
        return rows


def _piece_schema(piece: Piece) -> DiffSchema | None:
    return piece.schema if isinstance(piece, Change) else None


def _updated_by_change(rows: Node, change: Change) -> Node:
    schema = change.schema
    changed = [c for c in schema.changed if c in rows.names]
    if not changed:
        return rows
    untouched = antijoin(rows, change.leaf, schema.ids)
    new_values = keep(change.leaf, (*schema.ids, *map(post, changed)))
    values = {n: Column(post(n) if n in changed else n) for n in rows.names}
    return union_all([untouched, project(join_on(rows, new_values, schema.ids), values)])


# --- pushing restrictions down --------------------------------------------------------------------


def push_down(node: SemiJoin) -> Node:
    """A semijoin by equal columns, as close to the tables as its columns come from."""
    pairs = _equality_pairs(node)
    if pairs is None:
        return node
    return _restrict_to_keys(node.left, node.right, pairs)


Pairs = Mapping[str, tuple[str, str]]
"""For each restricted column: the column of the keys, and which equality compares them."""


def _equality_pairs(node: SemiJoin) -> Pairs | None:
    """The pairs of equal columns, if the condition is a conjunction of such equalities with
    distinct left columns."""
    left, right = set(node.left.names), set(node.right.names)
    pairs: dict[str, tuple[str, str]] = {}
    for part in conjuncts(node.condition):
        match part:
            case Call("=" | "<=>" as equal, (Column(own), Column(key))) if (
                own in left and key in right and own not in pairs
            ):
                pairs[own] = (key, equal)
            case _:
                return None
    return pairs


def _restrict_to_keys(rows: Node, keys: Node, pairs: Pairs) -> Node:
    """Restrict rows to some keys, below the operator where all key columns come from one input."""
    match rows:
        case Select():
            return with_children(rows, (_restrict_to_keys(rows.child, keys, pairs),))
        case Project():
            plain = {o.name: o.expression for o in rows.outputs}
            below = {e.name: c for c in pairs if isinstance(e := plain[c], Column)}
            if below:
                renamed = {c: pairs[name] for c, name in below.items()}
                child = with_children(rows, (_restrict_to_keys(rows.child, keys, renamed),))
                return child if len(below) == len(pairs) else _key_semijoin(child, keys, pairs)
        case Join() | SemiJoin() | AntiJoin():
            return _restrict_sides(rows, keys, pairs)
        case UnionAll():
            return with_children(
                rows, tuple(_restrict_to_keys(each, keys, pairs) for each in rows.inputs)
            )
        case GroupBy() if own := {c: pair for c, pair in pairs.items() if c in rows.keys}:
            group = with_children(rows, (_restrict_to_keys(rows.child, keys, own),))
            return group if len(own) == len(pairs) else _key_semijoin(group, keys, pairs)
        case Distinct():
            return with_children(rows, (_restrict_to_keys(rows.child, keys, pairs),))
        case Unnest() if inner := {c: pair for c, pair in pairs.items() if c in rows.child.names}:
            unnested = with_children(rows, (_restrict_to_keys(rows.child, keys, inner),))
            return unnested if len(inner) == len(pairs) else _key_semijoin(unnested, keys, pairs)
        case Window() if rows.partition_by:
            return _restrict_partitions(rows, keys, pairs)
    return _key_semijoin(rows, keys, pairs)


def _restrict_partitions(rows: Window, keys: Node, pairs: Pairs) -> Node:
    """Whole partitions: those with the keys, or those of the input rows that meet the keys."""
    own = {c: pair for c, pair in pairs.items() if c in rows.partition_by}
    if own:
        window = replace(rows, child=_restrict_to_keys(rows.child, keys, own))
        return window if len(own) == len(pairs) else _key_semijoin(window, keys, pairs)
    below = {c: pair for c, pair in pairs.items() if c in rows.child.names}
    if not below:
        return _key_semijoin(rows, keys, pairs)
    partitions = key_columns(
        _restrict_to_keys(rows.child, keys, below), rows.partition_by, distinct=True
    )
    equal = conjuncts(on_columns(rows.child, partitions, rows.partition_by))
    by = {
        c: (f"{c}{KEY}", _operator_of_equality(part))
        for c, part in zip(rows.partition_by, equal, strict=True)
    }
    window = replace(rows, child=_restrict_to_keys(rows.child, partitions, by))
    return _key_semijoin(window, keys, pairs)


def _operator_of_equality(condition: Expression) -> str:
    assert isinstance(condition, Call)
    return condition.function


def _restrict_sides(rows: Join | SemiJoin | AntiJoin, keys: Node, pairs: Pairs) -> Node:
    """Each side by its own columns, and by those that the join makes equal to restricted ones of
    the other: where `o.order = l.order` and rows are named by `o.order, l.number`, lines are found
    by both, and not by their number alone."""
    left = {c: pair for c, pair in pairs.items() if c in rows.left.names}
    right = {c: pair for c, pair in pairs.items() if c not in left}
    sides = [rows.left, rows.right]
    if left:
        sides[0] = _restrict_to_keys(
            rows.left, keys, {**_pairs_of_other_side(rows, rows.left, right), **left}
        )
    if right:
        sides[1] = _restrict_to_keys(
            rows.right, keys, {**_pairs_of_other_side(rows, rows.right, left), **right}
        )
    restricted = with_children(rows, tuple(sides))
    return _key_semijoin(restricted, keys, pairs) if left and right else restricted


def _pairs_of_other_side(rows: Join | SemiJoin | AntiJoin, side: Node, others: Pairs) -> Pairs:
    """Restrictions of the other side, for the columns of this one that equal its own and are part
    of a table's key, or kept in a cache: rows are looked up by keys."""
    schema = rows.left.schema + rows.right.schema
    leaves = [each for each in walk(side) if isinstance(each, Scan | Stored)]
    columns_by_key = {name for leaf in leaves for name in _look_up_columns(leaf)}
    pairs = {}
    for part in conjuncts(rows.condition):
        match part:
            case Call("=", (Column(first), Column(second))):
                for own, other in ((first, second), (second, first)):
                    same_type = find_field(own, schema).type == find_field(other, schema).type
                    if (
                        own in columns_by_key
                        and own in side.names
                        and other in others
                        and same_type
                    ):
                        pairs[own] = others[other]
    return pairs


def _look_up_columns(leaf: Scan | Stored) -> Iterable[str]:
    if isinstance(leaf, Stored):
        return leaf.names
    return (f"{leaf.alias}.{column}" for column in leaf.table.key)


def _key_semijoin(rows: Node, keys: Node, pairs: Pairs) -> Node:
    """The restriction itself; rows that were joined by keys have columns called like these."""
    names = {key: _free_column_name(key, rows.names) for key, _ in pairs.values()}
    targets = project(keys, {names[key]: Column(key) for key, _ in pairs.values()})
    parts = [Call(by, (Column(c), Column(names[key]))) for c, (key, by) in pairs.items()]
    return SemiJoin(rows, targets, conjunction(parts))


def _free_column_name(name: str, others: Collection[str]) -> str:
    while name in others:
        name += KEY
    return name
