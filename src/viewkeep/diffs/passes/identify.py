"""Pass 1: the IDs of every operator's rows, and the plan with what it lacks of them
(id_based_ivm, section 4 and table 1).

Operators that keep what they produce are extended too: a group-by also counts its rows, and keeps
the sums and counts that its averages are made of.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from viewkeep.diffs.passes.rename_groups import rename_groups
from viewkeep.diffs.rules.build import keep, project
from viewkeep.errors import QueryError
from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Output,
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
from viewkeep.query.column_classes import column_classes
from viewkeep.query.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    conjuncts,
    literal,
)
from viewkeep.query.traversal import walk, with_children
from viewkeep.query.types.data_types import BIGINT, VOID, Type
from viewkeep.query.types.inference import find_field, type_of

ROWS = "#rows"
"""How many rows a group has."""

ALL = "#all"
"""The ID of the only row of an aggregate without groups, always 0: no relation is without IDs."""

BRANCH = "#branch"
"""Which input of a union a row comes from."""


def value_columns(node: GroupBy) -> tuple[AggregateColumn, ...]:
    """The aggregates that are no ID."""
    return tuple(each for each in node.aggregates if each.name != ALL)


def sum_of(aggregate: str) -> str:
    """The name of the sum that an average keeps."""
    return f"{aggregate}#sum"


def count_of(aggregate: str) -> str:
    """The name of the number of values that are not NULL."""
    return f"{aggregate}#count"


POSITION = "#position"
"""Which row it is of those that the query holds."""


class MissingKeyError(QueryError):
    """A table whose rows cannot be told apart."""

    def __init__(self, table: str, why: str = "") -> None:
        reason = f"{', ' * bool(why)}{why}"
        super().__init__(f'table "{table}" has no key{reason}: declare one, or recompute the view')
        self.table = table


@dataclass(frozen=True)
class IdPlan:
    """A plan in which every operator has its IDs among its columns.

    `visible` are the columns of the view: pairs of the user's name and the name in the plan.
    """

    root: Node
    ids: Mapping[Node, tuple[str, ...]]
    visible: tuple[tuple[str, str], ...]

    @property
    def nodes(self) -> list[Node]:
        """The operators, inputs first; their positions are their numbers."""
        return list(walk(self.root))

    def attributes(self, node: Node) -> tuple[str, ...]:
        """The columns that are no IDs."""
        return tuple(name for name in node.names if name not in self.ids[node])


def identify(view: Node) -> IdPlan:
    """The plan of a view, extended by IDs; tables need keys."""
    extension = _IdExtension()
    root = extension.extend(rename_groups(view))
    ids = {node: extension.ids[node] for node in walk(root)}
    return IdPlan(root, ids, tuple((name, name) for name in view.names))


def equal_ids(join: Join, left: tuple[str, ...], right: tuple[str, ...]) -> dict[str, str]:
    """IDs of the right side that equal an ID of the left, which then stands for both; each left ID
    is used once, so that a change of the right side keeps as many IDs as it has."""
    equal_columns: dict[str, str] = {}
    for part in conjuncts(join.condition):
        match part:
            case Call("=", (Column(first), Column(second))):
                for own, other in ((first, second), (second, first)):
                    same_type = _column_type(join, own) == _column_type(join, other)
                    free = own not in equal_columns.values()
                    if own in left and other in right and same_type and free:
                        equal_columns.setdefault(other, own)
    return equal_columns


def _column_type(node: Node, column: str) -> Type:
    return find_field(column, node.schema).type


class _IdExtension:
    """Extended operators, each with its IDs and with the columns that it had before."""

    def __init__(self) -> None:
        self.ids: dict[Node, tuple[str, ...]] = {}
        self._results: dict[Node, Node] = {}

    def extend(self, node: Node) -> Node:
        if node not in self._results:
            extended, ids = self._extend_with_ids(node)
            self._results[node] = extended
            self.ids[extended] = ids
        return self._results[node]

    def _extend_with_ids(self, node: Node) -> tuple[Node, tuple[str, ...]]:
        match node:
            case Scan():
                if not node.table.key:
                    raise MissingKeyError(node.name)
                return node, tuple(f"{node.alias}.{column}" for column in node.table.key)
            case Stored():
                raise QueryError(f"{node.name} is no table: its rows have no key")
            case Values():
                rows = ((*row, literal(position)) for position, row in enumerate(node.rows))
                return Values((*node.columns, POSITION), tuple(rows)), (POSITION,)
            case Select():
                child = self.extend(node.child)
                return with_children(node, (child,)), self.ids[child]
            case Project():
                return self._project_with_ids(node)
            case Join():
                left, right = self._sides_with_ids(node)
                join = replace(node, left=left, right=right)
                same = equal_ids(join, self.ids[left], self.ids[right])
                rest = tuple(column for column in self.ids[right] if column not in same)
                return join, self.ids[left] + rest
            case SemiJoin() | AntiJoin():
                left, right = self._sides_with_ids(node)
                return replace(node, left=left, right=right), self.ids[left]
            case UnionAll():
                return self._union_with_ids(node)
            case GroupBy():
                return self._group_with_ids(node)
            case Distinct():
                group = GroupBy(node.child, node.child.names, (AggregateColumn(ROWS, "count"),))
                return self._group_with_ids(group)
            case Window():
                child = self.extend(node.child)
                ids = self.ids[child]
                ties = tuple(dict.fromkeys((*node.ties, *ids))) if node.is_by_place else ()
                return replace(node, child=child, ties=ties), ids

            case Unnest():
                child = self.extend(node.child)
                return replace(node, child=child), (*self.ids[child], node.elements[0])

    def _sides_with_ids(self, node: Join | SemiJoin | AntiJoin) -> tuple[Node, Node]:
        """Both inputs; columns that were added to both get other names on the right."""
        left, right = self.extend(node.left), self.extend(node.right)
        others = [*left.names, *right.names]
        names = {}
        for name in right.names:
            names[name] = _fresh_id_name(name, others) if name in left.names else name
            others.append(names[name])
        renamed = project(right, {new: Column(old) for old, new in names.items()})
        self.ids.setdefault(renamed, tuple(names[c] for c in self.ids[right]))
        return left, renamed

    def _project_with_ids(self, node: Project) -> tuple[Node, tuple[str, ...]]:
        """A column that equals an ID, such as the other side of a join's condition, is the ID."""
        child = self.extend(node.child)
        outputs = {each.name: each for each in node.outputs}
        ids, equal = list[str](), column_classes(child)
        for column in self.ids[child]:
            others = (each for each in equal.get(column, ()) if each not in self.ids[child])
            same = (Column(each) for each in (column, *others))
            plain = (name for c in same for name, o in outputs.items() if o.expression == c)
            name = next(plain, None) or _fresh_id_name(column, list(outputs))
            outputs[name] = Output(name, Column(column))
            ids.append(name)
        return replace(node, child=child, outputs=tuple(outputs.values())), tuple(ids)

    def _group_with_ids(self, node: GroupBy) -> tuple[Node, tuple[str, ...]]:
        child = self.extend(node.child)
        aggregates = {a.name: a for a in node.aggregates}
        for each in node.aggregates:
            if each.argument is not None and _keeps_count(node, each):
                name = count_of(each.name)
                aggregates.setdefault(name, AggregateColumn(name, "count", each.argument))
            if each.function == "avg":
                name = sum_of(each.name)
                aggregates.setdefault(name, AggregateColumn(name, "sum", each.argument))
        aggregates.setdefault(ROWS, AggregateColumn(ROWS, "count"))
        if not node.keys:  # a count of nothing is 0, also of an empty input
            aggregates[ALL] = AggregateColumn(ALL, "count", Cast(Literal(None, VOID), BIGINT))
        extended = replace(node, child=child, aggregates=tuple(aggregates.values()))
        return extended, node.keys or (ALL,)

    def _union_with_ids(self, node: UnionAll) -> tuple[Node, tuple[str, ...]]:
        """All inputs with the IDs of all: those of another input are NULL."""
        inputs = [self.extend(child) for child in node.inputs]
        id_fields = [[find_field(c, child.schema) for c in self.ids[child]] for child in inputs]
        same = all([f.type for f in each] == [f.type for f in id_fields[0]] for each in id_fields)
        names = [
            [f"#id{j}" if same else f"#id{i}.{j}" for j in range(len(fields))]
            for i, fields in enumerate(id_fields)
        ]
        branch_columns = {
            n: f
            for ns, fs in zip(names, id_fields, strict=True)
            for n, f in zip(ns, fs, strict=True)
        }
        branches = []
        for i, (child, own) in enumerate(zip(inputs, names, strict=True)):
            outputs: dict[str, Expression] = {c: Column(c) for c in node.inputs[i].names}
            outputs[BRANCH] = literal(i)
            for name, field in branch_columns.items():
                own_ids = dict(zip(own, self.ids[child], strict=True))
                null = Cast(Literal(None, VOID), field.type)
                outputs[name] = Column(own_ids[name]) if name in own_ids else null
            branch = project(child, outputs)
            self.ids[branch] = tuple(own)
            branches.append(branch)
        union = UnionAll(tuple(keep(branch, branches[0].names) for branch in branches))
        return union, (BRANCH, *branch_columns)


def _keeps_count(node: GroupBy, aggregate: AggregateColumn) -> bool:
    """Whether the values of a sum are counted, which tells where it is NULL: not those that never
    are, in a group-by that counts its rows itself."""
    counts_rows = any(each.name == ROWS for each in node.aggregates)
    nullable = aggregate.argument and type_of(aggregate.argument, node.child.schema).nullable
    return aggregate.function in ("sum", "avg") and (bool(nullable) or not counts_rows)


def _fresh_id_name(name: str, others: list[str]) -> str:
    while name in others:
        name += "'"
    return name
