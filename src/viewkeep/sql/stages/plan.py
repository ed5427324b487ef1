"""From a view to its stages: as few as its operators allow."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from viewkeep.errors import QueryError, UnsupportedError
from viewkeep.query.aggregates import COUNT_DISTINCT, Aggregate
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
    UnionAll,
    Window,
)
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.expressions import Cast, Column, Expression, Literal, columns_of, conjuncts
from viewkeep.query.flatten import NotConjunctive, construct_name, flatten
from viewkeep.query.tables import HIDDEN, Table
from viewkeep.query.traversal import walk, with_children
from viewkeep.query.types.data_types import Field, Type
from viewkeep.query.types.inference import Schema, find_field
from viewkeep.query.variables import Variables
from viewkeep.sql.conjunctive import conjunctive_aggregate
from viewkeep.sql.parse import parse_with_places
from viewkeep.sql.source import describe_position
from viewkeep.sql.stages.core import Core, core_of
from viewkeep.sql.stages.matches import joined_matches, single_antijoins
from viewkeep.sql.stages.model import Branch, Feed, Kind, Stage, StagePlan, Step, kept_places
from viewkeep.sql.stages.one_pass import in_one_pass

WAY_OUT = "an embedded lake keeps such a view: vk.Keeper(folder).create_view(name, sql)"

ONLY_SPARK = "a lake with Spark keeps whatever Spark runs: vk.Keeper(folder, spark)"

Branches = tuple[Branch, ...]

_AGGREGATE = f"{HIDDEN}aggregate "
"""Starts the names of aggregates among the columns of groups."""


def plan_sql(sql: str, tables: Mapping[str, Table]) -> StagePlan:
    """The stages of a view, or an error that names what prevents them and the way out."""
    try:
        tree, places = parse_with_places(sql, tables)
    except UnsupportedError as error:
        raise error.with_hint(ONLY_SPARK) from None
    try:
        return plan_stages(tree)
    except NotConjunctive as error:
        start = None if error.node is None else places.starts.get(error.node)
        place = "" if start is None else f" {describe_position(sql, start)}"
        problem = f"{error.construct}{place} is not kept in one process"
        raise QueryError(f"{problem}; {WAY_OUT}") from None


def plan_stages(tree: Node) -> StagePlan:
    """The stages of an algebra tree."""
    planner = _StagePlanner()
    root, steps = planner.root(in_one_pass(tree))
    tables = {node.name: node.table for node in walk(tree) if isinstance(node, Scan)}
    return StagePlan(planner.needed(root), steps, tree.schema, tuple(tables.items()))


class _StagePlanner:
    """Makes stages, inputs before those that read them."""

    def __init__(self) -> None:
        self._stages: dict[str, Stage] = {}
        self._virtual: dict[str, Branches] = {}
        """Relations that are no tables, and where their rows come from."""
        self._branches_by_node: dict[Node, Branches] = {}
        self._leaves: dict[Node, Node] = {}
        self._names = 0

    def root(self, tree: Node) -> tuple[Stage, tuple[Step, ...]]:
        """The stage that a view is read from, and what is left to do with its rows."""
        for _ in range(2):
            match self.branches(tree):
                case (Branch(source, steps, 1),) if source in self._stages:
                    stage = self._stages[source]
                    if set(kept_places(stage, steps).values()) == set(stage.query.outputs):
                        return stage, steps
            self._branches_by_node[tree] = self._joined(self._leaf(tree))
        raise AssertionError("the rows of a leaf are told apart by all their columns")

    def needed(self, root: Stage) -> tuple[Stage, ...]:
        """The stages that a stage depends on, and itself last."""
        names, waiting = {root.name}, [root]
        while waiting:
            sources = {b.source for feed in waiting.pop().feeds for b in feed.branches}
            new = [name for name in sources if name in self._stages and name not in names]
            names.update(new)
            waiting += [self._stages[name] for name in new]
        return tuple(stage for name, stage in self._stages.items() if name in names)

    # --- rows of operators ------------------------------------------------------------------------

    def branches(self, node: Node) -> Branches:
        """Where the rows of an operator come from."""
        if node not in self._branches_by_node:
            self._branches_by_node[node] = self._branches_of(node)
        return self._branches_by_node[node]

    def _branches_of(self, node: Node) -> Branches:
        match node:
            case Scan():
                return self._virtual.get(node.name) or (Branch(node.name),)
            case Select() | Project() if not _is_over_join(node):
                return tuple(b.then(_step_of(node)) for b in self.branches(node.child))
            case Select() | Project() | Join() | SemiJoin():
                return self._joined(node)
            case UnionAll():
                return tuple(branch for each in node.inputs for branch in self.branches(each))
            case AntiJoin():
                return self._without_matches(node)
            case Distinct():
                return self._distinct(node)
            case GroupBy() if node.aggregates:
                return self._groups(node)
            case GroupBy():
                keys = tuple(Output(key, Column(key)) for key in node.keys)
                return self.branches(Distinct(Project(node.child, keys)))
        limited = isinstance(node, Window) and node.limit is not None
        raise NotConjunctive("LIMIT" if limited else construct_name(node), node)

    def _without_matches(self, node: AntiJoin) -> Branches:
        several = single_antijoins(node)
        if several is not None:
            return self.branches(several)
        matched = SemiJoin(node.left, node.right, node.condition)
        negative = (branch.negative() for branch in self.branches(matched))
        return (*self.branches(node.left), *negative)

    def _joined(self, node: Node) -> Branches:
        """A stage for a tree of joins: the columns that its outputs read, then the outputs."""
        core = self._core(node, ())
        outputs = [core.flat.outputs[name] for name in node.names]
        query, variables = core.query(self._fresh_name(), outputs)
        step = _step(query.outputs, core.between, outputs, node.schema, variables)
        return (self._stage(query, Kind.ROWS, core).then(step),)

    def _distinct(self, node: Distinct) -> Branches:
        core = self._core(node.child, node.names)
        outputs = [core.column(core.flat.outputs[name]) for name in node.names]
        if core.between or not all(isinstance(each, Column | Literal) for each in outputs):
            return self.branches(Distinct(self._leaf(node.child)))
        query, variables = core.query(self._fresh_name(), outputs)
        step = _step(query.outputs, (), outputs, node.schema, variables)
        return (self._stage(query, Kind.DISTINCT, core).then(step),)

    def _groups(self, node: GroupBy) -> Branches:
        """A stage for groups over joins, or over rows that a stage before computes."""
        core = self._core(node.child, node.keys)
        keys = [core.column(core.flat.outputs[key]) for key in node.keys]
        aggregates = [self._aggregate(call, core, node) for call in node.aggregates]
        try:
            plain = all(isinstance(key, Column) for key in keys)
            mixed = any(_mixes_kinds(each, core.schema) for each in aggregates)
            if core.between or mixed or not plain:
                raise QueryError("keys, conditions or arguments that are computed before")
            query, variables = core.query(self._fresh_name(), keys, aggregates)
        except QueryError:
            return self.branches(self._over_leaf(node))
        names = (*query.outputs, *(f"{_AGGREGATE}{i}" for i in range(len(aggregates))))
        results = [Column(name) for name in names[len(query.outputs) :]]
        renamed = [variables.rename(key) for key in keys]
        outputs = [*renamed, *map(_in_type, results, node.schema[len(keys) :])]
        return (self._stage(query, Kind.GROUPS, core).then(Step(names, (), tuple(outputs))),)

    def _aggregate(self, call: AggregateColumn, core: Core, node: GroupBy) -> Aggregate:
        counts_values = call.function == COUNT_DISTINCT
        if call.others or call.order or (call.type is not None and not counts_values):
            raise NotConjunctive(f"the aggregate {call.function}()", node)
        return conjunctive_aggregate(call, core.flat, core.schema)

    def _over_leaf(self, node: GroupBy) -> GroupBy:
        """The groups over a relation with the keys and the arguments of the aggregates."""
        if any(node.child is leaf for leaf in self._leaves.values()):
            raise NotConjunctive("an aggregate that no ring computes", node)
        arguments = {
            call.name: call.argument for call in node.aggregates if call.argument is not None
        }
        names = {call: f"{HIDDEN}argument {i}" for i, call in enumerate(arguments)}
        outputs = [Output(key, Column(key)) for key in node.keys]
        outputs += [Output(names[call], argument) for call, argument in arguments.items()]
        outputs = outputs or [Output(f"{HIDDEN}row", Literal(1, Type("int")))]
        leaf = self._leaf(Project(node.child, tuple(outputs)))
        aggregates = tuple(
            replace(c, argument=Column(names[c.name]) if c.name in names else None)
            for c in node.aggregates
        )
        return GroupBy(leaf, node.keys, aggregates)

    # --- stages and their relations ---------------------------------------------------------------

    def _core(self, node: Node, keys: Sequence[str]) -> Core:
        flat = flatten(self._cut(node))
        return core_of(flat, [flat.outputs[key] for key in keys], self._extend)

    def _cut(self, node: Node) -> Node:
        """The tree with a leaf for everything that is not selected, projected or joined."""
        match node:
            case Scan():
                return node
            case Select() | Project() | Join():
                return with_children(node, tuple(map(self._cut, node.children)))
            case SemiJoin():
                return self._cut(joined_matches(node, self._fresh_name))
        return self._leaf(node)

    def _leaf(self, node: Node) -> Node:
        """A relation with the rows of an operator, under the names of its columns."""
        if node not in self._leaves:
            name = self._fresh_name()
            fields = {f"c{i}": field for i, field in enumerate(node.schema)}
            self._virtual[name] = self.branches(node)
            scan = Scan(name, Table(fields), name)
            pairs = zip(node.names, scan.names, strict=True)
            self._leaves[node] = Project(scan, tuple(Output(n, Column(c)) for n, c in pairs))
        return self._leaves[node]

    def _extend(self, scan: Scan, table: Table, expressions: Sequence[Expression]) -> Scan:
        name = self._fresh_name()
        extended = Scan(name, table, scan.alias)
        outputs = (*map(Column, scan.names), *expressions)
        typed = tuple(map(_in_type, outputs, extended.schema))
        step = Step(scan.names, (), typed)
        self._virtual[name] = tuple(branch.then(step) for branch in self.branches(scan))
        return extended

    def _stage(self, query: ConjunctiveQuery, kind: Kind, core: Core) -> Branch:
        tables = {scan.name: scan.table for scan in core.flat.scans}
        feeds = [
            Feed(
                relation,
                self._virtual.get(relation) or (Branch(relation),),
                tuple(map(tables[relation].names.index, query.columns_of(relation))),
            )
            for relation in query.relations
        ]
        self._stages[query.name] = Stage(query.name, query, kind, tuple(feeds))
        return Branch(query.name)

    def _fresh_name(self) -> str:
        self._names += 1
        return f"{HIDDEN}{self._names}"


def _is_over_join(node: Node) -> bool:
    while isinstance(node, Select | Project):
        node = node.child
    return isinstance(node, Join | SemiJoin)


def _step_of(node: Select | Project) -> Step:
    names = node.child.names
    if isinstance(node, Select):
        return Step(names, conjuncts(node.condition), tuple(map(Column, names)))
    expressions = (output.expression for output in node.outputs)
    return Step(names, (), tuple(map(_in_type, expressions, node.schema)))


def _step(
    names: tuple[str, ...],
    conditions: Sequence[Expression],
    outputs: Sequence[Expression],
    schema: Schema,
    variables: Variables,
) -> Step:
    """A step over the variables of a query."""
    typed = map(_in_type, map(variables.rename, outputs), schema)
    return Step(names, tuple(map(variables.rename, conditions)), tuple(typed))


def _in_type(expression: Expression, field: Field) -> Expression:
    """An expression in its declared type, where values of other kinds are computed for it."""
    if isinstance(expression, Cast) or field.type.name not in ("decimal", "double", "float"):
        return expression
    return expression if _is_value(expression) else Cast(expression, field.type)


def _is_value(expression: Expression) -> bool:
    """Whether an expression is a column or a literal, whose values have their types already;
    aggregates are computed."""
    computed = isinstance(expression, Column) and expression.name.startswith(_AGGREGATE)
    return isinstance(expression, Column | Literal) and not computed


def _mixes_kinds(aggregate: Aggregate, schema: Schema) -> bool:
    """Whether an argument is of decimals and floats, which no ring adds and multiplies."""
    names = columns_of(aggregate.argument) if aggregate.argument is not None else ()
    kinds = {find_field(name, schema).type.name for name in names}
    return "decimal" in kinds and not kinds.isdisjoint(("float", "double"))
