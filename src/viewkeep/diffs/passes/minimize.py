"""Pass 4: accesses that the meaning of diffs makes unnecessary (id_based_ivm, section 4, figure 8).

Of a table R after the changes, and its effective diffs, it is known that

    C1   inserted rows are in R
    C2   deleted rows are not
    C3   updated rows that are in R have the values of the diff

and the other way round before the changes. So rows of R that a diff of R names need not be looked
up: the diff has them. What is left without effect goes too.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from viewkeep.diffs.model import DELETE, INSERT, post, pre
from viewkeep.diffs.rules.build import FALSE, is_whole, project, select
from viewkeep.diffs.script import Apply, BaseDiff, Compute, Script, Statement
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
from viewkeep.query.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    conjunction,
    conjuncts,
    substitute,
)
from viewkeep.query.traversal import rewrite_tree, walk


def minimize(script: Script) -> Script:
    """The same changes with fewer reads of tables and fewer statements."""
    return _Minimizer(script).minimized()


def leave_out(script: Script, relations: Collection[str]) -> Script:
    """A script that does not change some of the relations that are kept, and computes nothing that
    only these need."""
    statements = [
        each
        for each in script.statements
        if not isinstance(each, Apply) or each.target not in relations
    ]
    return replace(script, statements=tuple(_statements_without_unused(statements)))


@dataclass(frozen=True)
class Chain:
    """Selections and projections over one diff of a base table, in one form."""

    diff: BaseDiff
    leaf: Stored
    columns: Mapping[str, Expression]
    conditions: tuple[Expression, ...] = ()

    def rows(self, columns: Mapping[str, Expression]) -> Node:
        """Other columns of the same rows."""
        return project(select(self.leaf, conjunction(self.conditions)), columns)


@dataclass
class _Minimizer:
    script: Script
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._diffs = {diff.name: diff for diff in self.script.diffs}
        self._applied = {apply.diff for apply in self.script.applies()}
        self._queries: dict[str, Node] = {}

    def minimized(self) -> Script:
        kept: list[Statement] = []
        for statement in self.script.statements:
            if isinstance(statement, Compute):
                query = self._smaller_query(statement)
                self._queries[statement.name] = query
                kept.append(replace(statement, query=query))
            else:
                kept.append(statement)
        kept = self._statements_without_empty(kept)
        kept = _statements_without_unused(kept)
        return replace(self.script, statements=tuple(kept), notes=tuple(dict.fromkeys(self.notes)))

    def _smaller_query(self, statement: Compute) -> Node:
        """The query with inlined chains and without look-ups that its diffs answer."""

        def rule(node: Node) -> Node:
            match node:
                case Stored(name=name) if name in self._queries and self._is_inlined(name):
                    return self._queries[name]
                case SemiJoin() | AntiJoin() | Join():
                    return self._rows_of_diff(statement.name, node)
            return node

        query = rewrite_tree(
            statement.query, lambda node: simplify_operator(rule(simplify_operator(node)))
        )
        return rewrite_tree(query, simplify_operator)

    def _is_inlined(self, name: str) -> bool:
        """Whether a statement is inlined where it is read: an empty query, or a chain over one diff
        that nothing applies."""
        query = self._queries[name]
        return is_empty(query) or (
            name not in self._applied and self._chain_over_diff(query) is not None
        )

    # --- figure 8 -------------------------------------------------------------------------------

    def _rows_of_diff(self, statement: str, node: SemiJoin | AntiJoin | Join) -> Node:
        table, chain = node.left, self._chain_over_diff(node.right)
        if (
            isinstance(table, Scan)
            and chain is not None
            and self._is_matched_by_key(node, table, chain)
        ):
            rows = self._table_rows_of_chain(table, chain)
            if isinstance(node, SemiJoin) and rows is not None:
                self._note_chain(statement, table, chain)
                return rows
            if isinstance(node, AntiJoin) and rows is not None and is_empty(rows):
                self._note_chain(statement, table, chain)
                return table
        return node

    def _table_rows_of_chain(self, table: Scan, chain: Chain) -> Node | None:
        """The rows of a table that its own diff names."""
        schema, after = chain.diff.schema, table.state == "post"
        if schema.kind == (DELETE if after else INSERT):
            return empty_rows(table)
        rest = [c for c in table.table.names if c not in schema.ids]
        if not set(rest) <= set(schema.after if after else schema.before):
            return None
        where = post if after else pre
        own = {c: Column(c if c in schema.ids else where(c)) for c in table.table.names}
        return chain.rows({f"{table.alias}.{c}": value for c, value in own.items()})

    def _is_matched_by_key(
        self, node: SemiJoin | AntiJoin | Join, table: Scan, chain: Chain
    ) -> bool:
        """Whether rows are matched by the whole key of the table, and by nothing else."""
        if chain.diff.table != table.name:
            return False
        matched = set()
        for part in conjuncts(node.condition):
            match part:
                case Call("=" | "<=>", (Column(own), Column(key))) if key in chain.columns:
                    if chain.columns[key] != Column(own.removeprefix(f"{table.alias}.")):
                        return False
                    matched.add(own)
                case _:
                    return False
        return matched == {f"{table.alias}.{c}" for c in table.table.key}

    def _note_chain(self, statement: str, table: Scan, chain: Chain) -> None:
        law = {INSERT: "C1", DELETE: "C2"}.get(chain.diff.schema.kind, "C3")
        state = "after" if table.state == "post" else "before"
        self.notes.append(
            f"{statement}: {table.name} {state} the changes is not read: "
            f"{chain.diff.name} tells its rows ({law})"
        )

    def _chain_over_diff(self, node: Node) -> Chain | None:
        match node:
            case Stored(name=name) if name in self._diffs:
                return Chain(self._diffs[name], node, {c: Column(c) for c in node.names})
            case Stored(name=name) if name in self._queries:
                return self._chain_over_diff(self._queries[name])
            case Select():
                below = self._chain_over_diff(node.child)
                if below is not None:
                    condition = _expression_over_chain(below, node.condition)
                    return replace(below, conditions=(*below.conditions, condition))
            case Project():
                below = self._chain_over_diff(node.child)
                if below is not None:
                    columns = {
                        o.name: _expression_over_chain(below, o.expression) for o in node.outputs
                    }
                    return replace(below, columns=columns)
        return None

    # --- what has no effect -----------------------------------------------------------------------

    def _statements_without_empty(self, statements: list[Statement]) -> list[Statement]:
        empty = {name for name, query in self._queries.items() if is_empty(query)}
        for name in sorted(empty & self._applied):
            self.notes.append(f"{name}: never has a row")
        return [s for s in statements if (s.diff if isinstance(s, Apply) else s.name) not in empty]


def _expression_over_chain(chain: Chain, expression: Expression) -> Expression:
    return substitute(expression, lambda column: chain.columns[column.name])


def _statements_without_unused(statements: list[Statement]) -> list[Statement]:
    """Statements whose result is applied, or read by one that stays."""
    names = {s.diff for s in statements if isinstance(s, Apply)}
    kept: list[Statement] = []
    for statement in reversed(statements):
        if isinstance(statement, Apply):
            kept.append(statement)
        elif statement.name in names:
            kept.append(statement)
            leaves = (n for n in walk(statement.query) if isinstance(n, Stored))
            names |= {leaf.name for leaf in leaves}
    return kept[::-1]


# --- simpler queries ------------------------------------------------------------------------------


def empty_rows(node: Node) -> Node:
    """No row, with the columns of a node."""
    return Select(node, FALSE)


def is_empty(node: Node) -> bool:
    """Whether a query is known to have no row."""
    return isinstance(node, Select) and node.condition == FALSE


def simplify_operator(node: Node) -> Node:
    """The operator without what does nothing: projections of projections, empty inputs."""
    match node:
        case Project(child=child) if is_empty(child):
            return empty_rows(node)
        case Project(child=Project(child=below, outputs=inner), outputs=outputs):
            values = {o.name: o.expression for o in inner}
            merged = {o.name: _expression_with_values(o.expression, values) for o in outputs}
            return simplify_operator(project(below, merged))
        case Project(child=child) if is_whole(child, {o.name: o.expression for o in node.outputs}):
            return child
        case Select(condition=condition) if condition == TRUE:
            return node.child
        case Select(child=child) if is_empty(child):
            return child
        case Select(child=Select(child=below, condition=inner), condition=condition):
            return Select(below, conjunction([inner, condition]))
        case Join() | SemiJoin() if is_empty(node.left) or is_empty(node.right):
            return empty_rows(node)
        case AntiJoin() if is_empty(node.left) or is_empty(node.right):
            return node.left
        case UnionAll():
            return _union_without_empty(node)
        case GroupBy() if node.keys and is_empty(node.child):
            return empty_rows(node)
        case Distinct() if is_empty(node.child):
            return node.child
        case Window() | Unnest() if is_empty(node.child):
            return empty_rows(node)
    return node


def _expression_with_values(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    return substitute(expression, lambda column: values[column.name])


def _union_without_empty(node: UnionAll) -> Node:
    rows = tuple(each for each in node.inputs if not is_empty(each))
    if len(rows) > 1:
        return replace(node, inputs=rows)
    return rows[0] if rows else node.inputs[0]
