"""Which engine runs a program: the reference engine, or compiled code where it can and pays."""

import os
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

from viewkeep.engine.compiled.rings import Unfit
from viewkeep.engine.interpreter.engine import ReferenceEngine
from viewkeep.errors import QueryError
from viewkeep.plan.payload import Payload
from viewkeep.plan.program import Program
from viewkeep.query.conjunctive import ConjunctiveQuery

if TYPE_CHECKING:
    from viewkeep.engine.compiled.engine import CompiledEngine
    from viewkeep.engine.compiled.values import Coder

Engine: TypeAlias = "ReferenceEngine | CompiledEngine"

ENGINES = ("auto", "reference", "compiled")

VARIABLE = "VIEWKEEP_ENGINE"
"""The environment variable that says which engine `engine="auto"` starts with."""

WORTHWHILE = 50_000
"""Changes after which `engine="auto"` compiles: by then the reference engine has taken about as
long as compiling takes."""

NEEDED = ("llvmlite", "numpy", "pyarrow")
"""What the extra `compiled` installs."""


def payload_obstacle(payload: Payload, query: ConjunctiveQuery) -> str:
    """Why payloads cannot be words of the compiled engine; nothing if they can."""
    # Only text: they need no library.
    from viewkeep.engine.compiled.extremes import extremes_obstacle, without_extremes
    from viewkeep.engine.compiled.rings import shape_of

    shape = shape_of(without_extremes(query, payload.ring))
    return shape if isinstance(shape, str) else extremes_obstacle(query)


class Engines:
    """Makes the engines of one maintainer, and knows why it is not the compiled one."""

    def __init__(
        self,
        kind: str,
        program: Program,
        payload: Payload,
        query: ConjunctiveQuery,
        check: bool = False,
        keep_inputs: bool = True,
    ) -> None:
        self._program, self._payload, self._query = program, payload, query
        self._keep_inputs = keep_inputs
        if not keep_inputs:
            kind = "compiled" if kind == "auto" else kind  # the other engine keeps everything
        self._start = os.environ.get(VARIABLE, kind) if kind == "auto" else kind
        if self._start not in ENGINES:
            raise QueryError(f"{VARIABLE}={self._start}: expected one of {', '.join(ENGINES)}")
        self.kind, self._changes = kind, 0
        self.reason = "the reference engine was asked for" if self._start == "reference" else ""
        if kind == "compiled" and (missing := missing_libraries()):
            raise QueryError(f'engine="compiled" needs {missing}: {INSTALL}')
        if self._start == "auto" and check:
            self.reason = "invariants are checked after every update"

    def first(self) -> Engine:
        """The engine of an empty maintainer."""
        if self._start == "compiled":
            return self.compiled() or self.reference()
        return self.reference()

    def reference(self) -> ReferenceEngine:
        """An empty reference engine."""
        return ReferenceEngine(self._program, self._payload.ring)

    def like(self, engine: Engine) -> Engine:
        """An empty engine of the same kind."""
        if isinstance(engine, ReferenceEngine):
            return self.reference()
        return self.with_coder(engine.coder)

    def compiled(self) -> "CompiledEngine | None":
        """An empty compiled engine; None where there can be none, and then `reason` says why."""
        if self.reason:
            return None
        if missing := missing_libraries():
            self.reason = f"{missing} is not installed"
            _warn_once(missing)
            return None
        try:
            return self.with_coder(None)
        except Exception as error:
            self.give_up(error)
            return None

    def give_up(self, error: Exception) -> None:
        """Do without the compiled engine from now on; an error other than `Unfit` is a defect, and
        is reported."""
        if isinstance(error, Unfit):
            self.reason = str(error)
            return
        self.reason = f"compiling failed ({type(error).__name__}: {error})"
        warnings.warn(f"{self.reason}: the reference engine goes on", stacklevel=2)

    def with_coder(self, coder: "Coder | None") -> "CompiledEngine":
        """An empty compiled engine whose values are coded like this."""
        from viewkeep.engine.compiled.engine import CompiledEngine

        return CompiledEngine(self._program, self._payload, self._query, coder, self._keep_inputs)

    def pays(self, changes: int) -> bool:
        """Whether, after so many more changes, compiling is worth its time."""
        self._changes += changes
        return self._start == "auto" and not self.reason and self._changes >= WORTHWHILE


INSTALL = "pip install 'viewkeep[compiled]'"


def missing_libraries() -> str:
    """The libraries of the extra `compiled` that are not installed."""
    return ", ".join(name for name in NEEDED if find_spec(name) is None)


def _warn_once(missing: str) -> None:
    """A warning shows once for each place in the code."""
    warnings.warn(
        f"{missing} is not installed, so updates run in pure Python: {INSTALL}", stacklevel=2
    )


def copy_state(source: Engine, target: Engine) -> Engine:
    """The target, with all that the source holds, partitioned in the same way."""
    if not isinstance(source, ReferenceEngine) and source.is_empty:
        return target  # nothing to take over, also where inputs are not kept
    target.load(list(source.inputs()), source.layout())
    target.counter[0] += source.counter[0]
    return target
