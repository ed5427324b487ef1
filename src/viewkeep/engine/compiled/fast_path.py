"""Ways into a compiled engine that need no Python for each row: tables, and single rows."""

from collections.abc import Callable
from typing import Any

from viewkeep.engine.compiled.emit.text import Lifts
from viewkeep.engine.compiled.lifts import Lifter, lifted_words, single_lines
from viewkeep.engine.compiled.llvm.machine import MachineCode
from viewkeep.engine.compiled.llvm.python_rows import (
    LINK,
    UPDATE,
    api_text,
    available,
    single_text,
    update_text,
)
from viewkeep.engine.compiled.rings import RingShape
from viewkeep.engine.compiled.sums import Sums, unit_name
from viewkeep.engine.compiled.table_intake import Batches, ColumnIntake
from viewkeep.engine.compiled.values import Coder
from viewkeep.plan.payload import Payload, distinct_variables
from viewkeep.plan.program import Program
from viewkeep.query.conjunctive import ConjunctiveQuery

Row = tuple[Any, ...]


class FastPaths:
    """The inlets of all relations, where lifting functions are products of columns."""

    def __init__(
        self,
        program: Program,
        payload: Payload,
        query: ConjunctiveQuery,
        coder: Coder,
        shape: RingShape,
        sums: Sums | None,
    ) -> None:
        self._program, self._query, self._shape, self._sums = program, query, shape, sums
        self._lifted = lifted_words(query, payload)
        self._intakes: dict[str, ColumnIntake] = {}
        lifters = self._lifters()
        if lifters is not None:
            self._intakes = {
                relation: ColumnIntake(query, relation, coder, lifters, payload.ring.subtractable)
                for relation in query.relations
            }
        self._direct = [name for name, each in self._intakes.items() if each.direct]

    def _lifters(self) -> dict[int, Lifter | None] | None:
        """By atom, what computes payloads of columns; None where machine code does."""
        if self._sums is not None:
            return dict.fromkeys(range(len(self._query.atoms)))
        if self._lifted is None:
            return None
        return {atom: Lifter(self._shape, words) for atom, words in self._lifted.items()}

    def lifts(self) -> Lifts:
        """How single tuples are lifted, for the relations whose rows need no Python.

        Lifts name the query's variables; where inputs are copied, triggers have others.
        """
        if (sums := self._sums) is not None:
            units = tuple(unit_name(*place) for place in sums.units)
            return Lifts(dict(sums.lines), True, units, sums.floats)
        lifted, atoms = self._lifted or {}, self._query.atoms
        return Lifts(
            {
                atom: single_lines(
                    lifted[atom], distinct_variables(atoms[atom].variables), self._shape
                )
                for atom in dict.fromkeys(trigger.atom for trigger in self._program.triggers)
                if atom in lifted and atoms[atom].relation in self._direct
            }
        )

    def module(self) -> str:
        """LLVM of functions that take single rows, one for each relation that allows it."""
        if not self._direct or not available():
            return ""
        singles = [
            single_text(self._inlet_name(relation), *self._trigger_functions(relation))
            for relation in self._direct
        ]
        return "\n".join(
            [api_text(), *singles, update_text(list(map(self._trigger_functions, self._direct)))]
        )

    def _trigger_functions(self, relation: str) -> tuple[int, list[str]]:
        """The arity of a relation, and the functions that its rows are passed to."""
        atoms = [i for i, atom in enumerate(self._query.atoms) if atom.relation == relation]
        return len(self._query.atoms[atoms[0]].variables), [f"call_{atom}" for atom in atoms]

    def _inlet_name(self, relation: str) -> str:
        return f"single_{self._query.relations.index(relation)}"

    def single(
        self, relation: str, code: MachineCode, address: int
    ) -> Callable[[Row, int], bool | None] | None:
        """What takes a row of a relation and a multiplicity (see `Runner.singles`), if its values
        have been nothing but integers so far."""
        if self.mask(relation) != 0:
            return None
        return code.builtin(self._inlet_name(relation), address)

    def mask(self, relation: str) -> int | None:
        """Which columns of single rows are texts, where all others have been nothing but integers
        so far; None where machine code takes no such rows."""
        if relation not in self._direct or not available():
            return None
        return self._intakes[relation].text_mask

    def update(
        self, code: MachineCode, python: Callable[..., None], on_overflow: Callable[..., None]
    ) -> tuple[Callable[..., None], list[Any]]:
        """`update` for rows of plain integers, and the list that it is bound to: while the state's
        address and a relation's name stand in it, its rows need no Python."""
        link = [0, python, on_overflow, 0, 0, *[None, 0] * len(self._direct)]
        return code.builtin(UPDATE, link, keywords=True), link

    def place(self, relation: str) -> int:
        """Where a relation's name stands in that list."""
        return LINK + 2 * self._direct.index(relation)

    def batches(
        self, relation: str, rows: Any, multiplicities: Any, loading: bool
    ) -> Batches | None:
        """A table as columns of changes, atom by atom; None if it must be read row by row."""
        intake = self._intakes.get(relation)
        return None if intake is None else intake.batches(rows, multiplicities, loading)
