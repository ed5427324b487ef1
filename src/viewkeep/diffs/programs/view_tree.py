"""View trees as algebra (F-IVM; ivm_lecture, part 2): a group-by over joins becomes joins of
group-bys along a variable order.

For a bound variable X with the inputs C1, ..., Ck (scans, or views of the variables below):

    V_X(dep) = group by dep over C1 join ... join Ck, with sums of products of their measures

The views are kept as caches, and a change climbs: it meets the other inputs of its node and is
summed up. Variables that the view groups by stand on top; there nothing is summed away, and the
output is the join of the views below them, of which a refresh computes the changed part.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from viewkeep.analysis.maintenance_order import maintenance_order
from viewkeep.analysis.variable_order import BOUND, JoinShape, VariableOrder
from viewkeep.diffs.optimize.share_groups import share_groups
from viewkeep.diffs.programs.factors import (
    Factor,
    as_map,
    as_rows,
    join_factors,
    only_if_rows,
    scan_factor,
)
from viewkeep.diffs.programs.grouped_join import GroupedJoin, grouped_join
from viewkeep.diffs.programs.outputs import Outputs
from viewkeep.errors import QueryError
from viewkeep.query.algebra import Distinct, GroupBy, Join, Node, Scan
from viewkeep.query.flatten import NotConjunctive
from viewkeep.query.traversal import rewrite_tree, walk


def with_view_trees(view: Node) -> Node:
    """The view with a view tree in place of each group-by over joins; an error if it has none."""
    problems: list[NotConjunctive] = []
    trees = 0

    def rule(node: Node) -> Node:
        nonlocal trees
        group = _view_as_group(node)
        if group is None or not any(isinstance(each, Join) for each in walk(group.child)):
            return node
        try:
            tree = _ViewTree(grouped_join(group)).rows()
        except NotConjunctive as problem:
            problems.append(problem)
            return node
        trees += 1
        return tree

    rewritten = rewrite_tree(view, rule)
    if not trees:
        raise _view_tree_refusal(problems)
    return share_groups(rewritten)


def _view_as_group(node: Node) -> GroupBy | None:
    if isinstance(node, Distinct):
        return GroupBy(node.child, node.child.names, ())
    return node if isinstance(node, GroupBy) else None


def _view_tree_refusal(problems: list[NotConjunctive]) -> QueryError:
    way_out = 'choose strategy="auto", or "id"'
    if problems:
        return QueryError(f"no view tree for this view: {problems[0].construct}; {way_out}")
    return QueryError(f"no view tree for this view: it sums up no join of tables; {way_out}")


@dataclass
class _ViewTree:
    """The tree of one group-by over joins, built from its leaves up."""

    join: GroupedJoin
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._shape = JoinShape.of(self.join.query)
        self._outputs = Outputs(self.join)
        self._measures = self._outputs.measures

    def rows(self) -> Node:
        """The tree with the columns of the group-by."""
        roots = maintenance_order(self.join.query, self._shape)
        factors = [each for root in roots for each in self._output_factors(root)]
        factors += [each for each in self._factors_of_scans() if not each.free]
        root = join_factors(self._inputs_of_join(factors), self._measures)
        if self._trusts_dependencies(root):
            root = self._one_row_per_group(root)
        return self._outputs.rows(root)

    def _trusts_dependencies(self, root: Factor) -> bool:
        """Whether bound variables stand on top because of dependencies that nobody has checked."""
        bound = set(root.variables) - set(self.join.query.outputs)
        return bool(bound) and any(map(self._is_unchecked, self.join.scans))

    def _is_unchecked(self, scan: Scan) -> bool:
        """Dependencies are taken from users; so is that a foreign key names a key."""
        keys = {each.name.lower(): set(each.table.key) for each in self.join.scans}
        return bool(scan.table.fds) or any(
            set(each.referenced_columns) != keys.get(each.table.lower(), set())
            for each in scan.table.foreign_keys
            if each.referenced_columns and each.table.lower() in keys
        )

    def _one_row_per_group(self, root: Factor) -> Factor:
        return as_map(root.summed_to(self.join.query.outputs), self._factor_name(root))

    # --- the tree -------------------------------------------------------------------------------

    def _output_factors(self, order: VariableOrder) -> list[Factor]:
        """The factors of the output below a variable, those with fewest variables first."""
        if all(self._shape.levels[each.variable] == BOUND for each in order.walk()):
            return [self._bound_view(order)]
        own = sorted(self._leaves_at(order), key=lambda each: len(each.free))
        return [*own, *(each for child in order.children for each in self._output_factors(child))]

    def _bound_view(self, order: VariableOrder) -> Factor:
        """The view of a bound variable before it is summed away; with a single input, summing waits
        for further variables."""
        inputs = [*self._leaves_at(order), *map(self._bound_view, order.children)]
        whole = (
            inputs[0]
            if len(inputs) == 1
            else join_factors(self._inputs_of_join(inputs), self._measures)
        )
        return whole.summed_to(order.depends_on)

    def _factors_of_scans(self) -> list[Factor]:
        count = len(self.join.scans)
        return [scan_factor(self.join, scan, self._measures) for scan in range(count)]

    def _leaves_at(self, order: VariableOrder) -> list[Factor]:
        """The scans whose lowest variable in the order is this one."""
        below = {each.variable for child in order.children for each in child.walk()}
        return [
            leaf
            for leaf in self._factors_of_scans()
            if order.variable in leaf.variables and below.isdisjoint(leaf.variables)
        ]

    def _inputs_of_join(self, factors: list[Factor]) -> list[Factor]:
        """The inputs of a join: maps, and tables as they are where others look up by their key."""
        inputs = []
        for each in factors:
            others = [other for other in factors if other is not each]
            name = self._factor_name(each)
            ready = as_rows(each, name) if _is_found_by_key(each, others) else as_map(each, name)
            inputs.append(ready if ready.free or not self.join.keys else only_if_rows(ready))
        return inputs

    def _factor_name(self, factor: Factor) -> str:
        name = "_".join(self.join.scans[scan].alias for scan in sorted(factor.scans))
        while name in self.names:
            name += "'"
        self.names.add(name)
        return name


def _is_found_by_key(factor: Factor, others: Iterable[Factor]) -> bool:
    """Whether all other factors that share variables with a table have its key among them."""
    if factor.key is None or not factor.key <= set(factor.free):
        return False
    near = [other for other in others if not set(other.free).isdisjoint(factor.free)]
    return bool(near) and all(factor.key <= set(other.free) for other in near)
