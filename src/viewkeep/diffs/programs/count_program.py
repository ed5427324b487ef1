"""The adaptive trigger program of a view that sums up a join, in groups or as a whole, with its
relations."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from viewkeep.diffs.model import DELETE, INSERT, base_diff_columns, post, pre
from viewkeep.diffs.passes.identify import ALL
from viewkeep.diffs.programs.factors import Factor, join_factors, scan_factor, within
from viewkeep.diffs.programs.grouped_join import GroupedJoin, grouped_join
from viewkeep.diffs.programs.levels import Levels
from viewkeep.diffs.programs.measures import SUM, ZERO
from viewkeep.diffs.programs.outputs import Outputs
from viewkeep.diffs.programs.ring_maps import RingMap, ring_map
from viewkeep.diffs.rules.build import project, select
from viewkeep.diffs.script import BaseDiff
from viewkeep.errors import QueryError
from viewkeep.plan.adaptive.costs import shortest_first
from viewkeep.plan.choose import plan, plan_groups
from viewkeep.plan.program import Block, Join, Part, Program, Step, Trigger, Update
from viewkeep.plan.view_tree import RESULT
from viewkeep.query.algebra import GroupBy, Node, Output, Project, Select, Stored, Values
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.expressions import Call, Cast, Column, Expression, conjunction, literal
from viewkeep.query.flatten import NotConjunctive
from viewkeep.query.show import formula_text
from viewkeep.query.traversal import with_children

MOST_MAPS = 50
"""Beyond so many parts and views a refresh does little else than to look after them."""

Rows = Callable[[RingMap], Node]
"""The rows of a map at some moment."""


def count_program(view: Node) -> "CountProgram":
    """The program of a view, or NotConjunctive with the reason why it has none."""
    above, group = _count_below_projections(view)
    join = grouped_join(group)
    outputs = Outputs(join)
    for measure in outputs.measures:
        if measure.function != SUM:
            raise NotConjunctive(f"the aggregate {measure.function}(): extremes are not subtracted")
    query = query_of_joined(join)
    try:
        own = plan_groups(query) if query.outputs else plan(query, "epsilon")
        program = shortest_first(own)
    except QueryError as problem:
        raise NotConjunctive(f"{problem}") from None
    if len(program.maps) > MOST_MAPS:
        raise NotConjunctive(f"it would keep {len(program.maps)} relations, more than {MOST_MAPS}")
    return CountProgram(join, outputs, above, program)


def _count_below_projections(view: Node) -> tuple[list[Node], GroupBy]:
    """The projections and selections above a group-by, and the group-by."""
    above: list[Node] = []
    while isinstance(view, Project | Select):
        above.append(view)
        view = view.child
    if not isinstance(view, GroupBy):
        raise NotConjunctive("it sums up no join of tables")
    return above[::-1], view


def query_of_joined(join: GroupedJoin) -> ConjunctiveQuery:
    """The count of the join by group, over the variables that occurrences of tables share and
    those of groups."""
    head = tuple(dict.fromkeys(join.keys.values()))
    often = [v for own in join.variables for v in own]
    atoms = []
    for scan, own in zip(join.scans, join.variables, strict=True):
        if not any(often.count(v) > 1 for v in own):
            raise NotConjunctive(f"{scan.name}, which no equality joins with another table")
        kept = tuple(v for v in own if often.count(v) > 1 or v in head)
        atoms.append(Atom(scan.alias, kept))
    return ConjunctiveQuery("Q", head, tuple(atoms))


@dataclass(frozen=True)
class CountProgram:
    """A program with the maps, parts and levels that it keeps, in terms of the view's tables."""

    join: GroupedJoin
    outputs_of_view: Outputs
    above: Sequence[Node]
    program: Program

    @cached_property
    def atoms(self) -> tuple[RingMap, ...]:
        """The occurrences of tables, summed up to the variables that they share."""
        query = query_of_joined(self.join)
        return tuple(
            self._ring_map_of(scan.alias, scan.alias, atom.variables, frozenset({number}))
            for number, (scan, atom) in enumerate(zip(self.join.scans, query.atoms, strict=True))
        )

    @cached_property
    def maps(self) -> dict[str, RingMap]:
        """All maps by their names in the program; their own names are those of caches."""
        parts = {part.map: part.atom for part in self.program.parts}
        maps = {}
        for number, each in enumerate(self.program.maps):
            name = f"cache_{number}"
            if each.name in parts:
                maps[each.name] = replace(self.atoms[parts[each.name]], name=name)
            else:
                maps[each.name] = self._ring_map_of(name, name, each.key, each.atoms)
        return maps

    def _ring_map_of(
        self, name: str, prefix: str, key: Sequence[str], scans: frozenset[int]
    ) -> RingMap:
        measures = within(self.outputs_of_view.measures, scans)
        return ring_map(self.join, name, prefix, key, scans, measures)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Where the tuples of each atom are."""
        return self.program.parts

    @cached_property
    def views(self) -> list[RingMap]:
        """The joins of parts that are kept, each after what it is made from."""
        targets = dict.fromkeys(_target_of_block(block) for block in self.program.loading)
        return [self.maps[name] for name in targets if name != RESULT]

    @cached_property
    def levels(self) -> tuple[Levels, ...]:
        """What tells the values of each split apart."""
        splits = enumerate(self.program.splits)
        return tuple(Levels(f"cache_degrees_{number}", split) for number, split in splits)

    def siblings(self, part: Part, split: int) -> Iterator[tuple[int, Part]]:
        """The parts that tuples move to when their value in a split gets another level."""
        if split not in dict(part.levels):
            return
        for other in self.parts:
            others = dict(other.levels)
            same = other.atom == part.atom and other is not part
            if same and {**others, split: 0} == {**dict(part.levels), split: 0}:
                yield others[split], other

    # --- columns --------------------------------------------------------------------------------

    def columns_of(self, atom: int) -> dict[str, str]:
        """The column of each variable of an atom."""
        own = self.atoms[atom]
        return {variable: own.column(variable) for variable in own.key}

    def value_pairs(self, atom: int, levels: Levels) -> list[tuple[str, str]]:
        """The columns of an atom that hold the values of a split, and those of its levels."""
        columns = self.columns_of(atom)
        return [(columns[v], levels.column(v)) for v in levels.split.variables]

    # --- rows of tables -------------------------------------------------------------------------

    def leaf_rows(self, atom: int) -> Node:
        """The rows of a table, summed up; those with a NULL meet no others."""
        return self.atoms[atom].summed([self._rows_of_atom(atom, self.join.scans[atom])])

    def change(self, atom: int, diffs: Iterable[BaseDiff]) -> Node:
        """What diffs of a table change of an atom: the rows after them, less those before."""
        own = self.atoms[atom]
        before = [self._rows_of_diff(atom, d, pre) for d in diffs if d.schema.kind != INSERT]
        after = [self._rows_of_diff(atom, d, post) for d in diffs if d.schema.kind != DELETE]
        bags = [own.negated(own.summed(before))] if before else []
        bags += [own.summed(after)] if after else []
        return own.changing(own.summed(bags))

    def _rows_of_diff(self, atom: int, diff: BaseDiff, value: Callable[[str], str]) -> Node:
        scan = self.join.scans[atom]
        leaf = Stored(diff.name, base_diff_columns(diff.schema, scan.table.columns))
        columns: dict[str, Expression] = {
            f"{scan.alias}.{c}": Column(c if c in diff.schema.ids else value(c))
            for c in scan.table.names
        }
        return self._rows_of_atom(atom, project(leaf, columns))

    def _rows_of_atom(self, atom: int, rows: Node) -> Node:
        factor = scan_factor(self.join, atom, self.outputs_of_view.measures)
        own = self.atoms[atom]
        values = [factor.variables[v] for v in own.key if self._is_joined(v)]
        there: list[Expression] = [Call("isnotnull", (value,)) for value in values]
        matches = select(rows, conjunction([*self.join.conditions[atom], *there]))
        return own.rows(replace(factor, rows=matches))

    def _is_joined(self, variable: str) -> bool:
        return sum(variable in each.key for each in self.atoms) > 1

    # --- joins ----------------------------------------------------------------------------------

    def path(self, start: RingMap, steps: Iterable[Step], rows: Rows) -> Factor:
        """The rows of a map, joined step by step."""
        return self.join_steps(start.factor(rows(start)), steps, rows)

    def join_steps(self, start: Factor, steps: Iterable[Step], rows: Rows) -> Factor:
        """Rows joined with the maps that steps look up, one after the other."""
        accesses = [a for step in steps if isinstance(step, Join) for a in step.accesses]
        maps = [self.maps[each.map] for each in accesses]
        factors = [start, *(each.factor(rows(each)) for each in maps)]
        return join_factors(factors, self.outputs_of_view.measures)

    def loading(self, own: RingMap) -> list[Block]:
        """The blocks that make a map from those before it."""
        return [
            block for block in self.program.loading if self.maps[_target_of_block(block)] == own
        ]

    def outputs(self, own: RingMap) -> tuple[tuple[Step, ...], ...]:
        """The ways from a tuple of an atom to the sums of the view."""
        [atom] = own.scans
        return next(each.outputs for each in self.program.triggers if each.atom == atom)

    def view_blocks(self, part: Part) -> Iterator[tuple[RingMap, tuple[Step, ...]]]:
        """The views that a part is in, each with the steps from a tuple of the part to its rows."""
        for block in self._trigger_of_part(part).blocks:
            target = _target_of_block(block)
            if target not in (RESULT, part.map):
                yield self.maps[target], block.steps

    def _trigger_of_part(self, part: Part) -> Trigger:
        return next(
            each
            for each in self.program.triggers
            if each.atom == part.atom and each.part in ("", part.map)
        )

    # --- the view -------------------------------------------------------------------------------

    @property
    def result(self) -> RingMap:
        """The sums of the view, by group."""
        return self.maps[RESULT]

    def zero_row(self) -> Node:
        """The sums of nothing, where there is one row for all."""
        zeros: list[Expression] = [Cast(literal(0), kind) for _, kind in self.result.measures]
        return Values((ALL, *self.result.sums), ((ZERO, *zeros),))

    def shown(self, sums: Node) -> tuple[Node, tuple[str, ...]]:
        """The rows of the view from the sums, and their IDs in the order of those of the sums."""
        rows, ids = _with_ids(self.outputs_of_view.rows(self.result.factor(sums)), self.result.ids)
        for each in self.above:
            rows, ids = _with_ids(with_children(each, (rows,)), ids)
        return rows, ids

    # --- for people -----------------------------------------------------------------------------

    def describe_part(self, part: Part) -> str:
        """What a part holds."""
        table = self.join.scans[part.atom].alias
        names = {0: "light", 1: "heavy"}
        words = []
        for number, level in part.levels:
            split = self.program.splits[number]
            word = names[level] if len(split.thresholds) == 1 else f"level {level}"
            words.append(f"{word} {', '.join(split.variables)}")
        return f"{table}, {' and '.join(words)}" if words else table

    def describe_values(self, levels: Levels) -> str:
        """The columns whose values a split tells apart, table by table."""
        texts = []
        for atom in levels.split.atoms:
            columns = [self.join.variables[atom][v] for v in levels.split.variables]
            texts.append(", ".join(map(formula_text, columns)))
        return " = ".join(texts)

    def describe_view(self, own: RingMap) -> str:
        """What a view joins."""
        name = next(name for name, each in self.maps.items() if each == own)
        return self.program.map(name).definition


def _with_ids(node: Node, ids: Sequence[str]) -> tuple[Node, tuple[str, ...]]:
    """A node with IDs of the rows below it, and what they are called: those that a projection does
    not show are added to it."""
    if not isinstance(node, Project):
        return node, tuple(ids)
    shown = {
        out.expression.name: out.name
        for out in reversed(node.outputs)
        if isinstance(out.expression, Column)
    }
    hidden = [name for name in ids if name not in shown]
    outputs = (*node.outputs, *(Output(name, Column(name)) for name in hidden))
    return Project(node.child, outputs), tuple(shown.get(name, name) for name in ids)


def _target_of_block(block: Block) -> str:
    last = block.steps[-1]
    assert isinstance(last, Update)
    return last.target
