"""What a maintainer tells of itself: engine, strategy, steps, sizes, what is heavy."""

from viewkeep.engine.interpreter.partitions import Partition
from viewkeep.engine.live import LiveQuery
from viewkeep.engine.switching import Engine
from viewkeep.plan.program import Program
from viewkeep.query.conjunctive import ConjunctiveQuery


class Inspection:
    """The part of a maintainer that changes and reads no rows."""

    query: ConjunctiveQuery
    program: Program
    _live: LiveQuery

    @property
    def engine(self) -> Engine:
        """What runs the program now."""
        return self._live.runner.engine

    @property
    def engine_reason(self) -> str:
        """Why the compiled engine is not used; nothing if it is, or may come to be."""
        return self._live.runner.reason

    def explain(self) -> str:
        """How the query is maintained: its strategy, the engine, and why it is that one.

        >>> from viewkeep import maintain
        >>> print(maintain("Q(a; min(-b)) = R(a, b)", engine="compiled").explain())
        Q(a; min(-b)) = R(a, b)
        strategy viewtree
        engine reference: min(-b) is of an expression, which machine code does not keep in order
        """
        name = "compiled" if self._live.runner.compiled else "reference"
        reason = f": {self.engine_reason}" if self.engine_reason else ""
        return f"{self.query}\nstrategy {self.program.strategy}\nengine {name}{reason}"

    def memory(self) -> dict[str, int]:
        """Bytes that the compiled engine holds for each map; fused maps share them."""
        with self._live.gate:
            return self._live.runner.memory()

    @property
    def steps(self) -> int:
        """Elementary steps so far: what the bounds are checked with."""
        return self.engine.steps

    def sizes(self) -> dict[str, int]:
        """How many entries each map has."""
        with self._live.gate:
            return self.engine.sizes()

    def partitions(self) -> tuple[Partition, ...]:
        """What is heavy now, for programs that tell heavy values from light ones."""
        with self._live.gate:
            self._live.flush()
            return () if self.engine.partitions is None else self.engine.partitions.state()
