"""What heavy and light parts keep, from scratch: each relation from the tables and those before."""

from collections.abc import Sequence

from viewkeep.diffs.passes.compose import VIEW
from viewkeep.diffs.passes.identify import ALL
from viewkeep.diffs.programs.count_program import CountProgram
from viewkeep.diffs.programs.levels import ANEW, BALANCE, BALANCE_COLUMNS, Levels, balance_of
from viewkeep.diffs.programs.measures import ONE
from viewkeep.diffs.programs.ring_maps import RingMap, not_matching, rows_with_keys
from viewkeep.diffs.rules.build import project, select
from viewkeep.diffs.script import Materialized
from viewkeep.plan.program import Part
from viewkeep.query.algebra import Node, Stored
from viewkeep.query.expressions import Call, Column, Expression, literal


class KeptParts:
    """The caches of a program and the view, by name; the view comes last."""

    def __init__(self, program: CountProgram) -> None:
        self._program = program
        self.materialized: dict[str, Materialized] = {}
        leaves = [program.leaf_rows(atom) for atom in range(len(program.atoms))]
        self._keep_relation(
            BALANCE, balance_of(leaves), (ALL,), "the size, and the base of thresholds"
        )
        for each in program.levels:
            about = f"degrees and levels of {', '.join(each.split.variables)}"
            self._keep_relation(each.name, self._initial_levels(each, leaves), each.ids, about)
        for part in program.parts:
            own, rows = program.maps[part.map], self.of_part(leaves[part.atom], part)
            self._keep_relation(own.name, rows, own.ids, program.describe_part(part))
        for view in program.views:
            self._keep_relation(
                view.name, self._initial_view(view), view.ids, program.describe_view(view)
            )
        result = program.result
        nothing = () if result.key else (program.zero_row(),)
        about = "the sums of all rows, by group" if result.key else "the sums of all rows"
        self._keep_relation(result.name, self._initial_view(result, *nothing), result.ids, about)
        self._keep_relation(VIEW, *program.shown(self.stored(result.name)), "the view")

    def stored(self, name: str) -> Stored:
        """A relation as it is kept."""
        return Stored(name, self.materialized[name].definition.schema)

    def of_part(self, rows: Node, part: Part) -> Node:
        """Those rows of an atom whose values have the levels of a part."""
        for number, level in part.levels:
            levels = self._program.levels[number]
            stored, own = self.stored(levels.name), Column(levels.level)
            pairs = self._program.value_pairs(part.atom, levels)
            if level:
                same = select(stored, Call("=", (own, literal(level))))
                rows = rows_with_keys(rows, same, pairs)
            else:
                higher = select(stored, Call(">", (own, literal(0))))
                rows = not_matching(rows, higher, pairs)
        return rows

    def _keep_relation(self, name: str, rows: Node, ids: tuple[str, ...], why: str) -> None:
        self.materialized[name] = Materialized(name, rows, ids, why)

    def _initial_levels(self, levels: Levels, leaves: Sequence[Node]) -> Node:
        """Degrees counted in the tables, and levels without slack."""
        degree_counts = [
            levels.changes(leaves[atom], atom, self._program.columns_of(atom), ONE)
            for atom in levels.split.atoms
        ]
        columns: dict[str, Expression] = {name: Column(name) for name in BALANCE_COLUMNS}
        balance = project(self.stored(BALANCE), {**columns, ANEW: ONE})
        due = levels.with_new_level(levels.summed(degree_counts), balance)
        columns = {name: Column(name) for name in levels.columns}
        return project(due, {**columns, levels.level: Column(levels.new_level)})

    def _initial_view(self, own: RingMap, *more: Node) -> Node:
        """A view by the blocks that load it, from parts and views before it."""

        def rows(each: RingMap) -> Node:
            return self.stored(each.name)

        program = self._program
        bags = [
            own.rows(program.path(program.maps[block.source], block.steps, rows))
            for block in program.loading(own)
        ]
        return own.summed([*more, *bags])
