"""Maintenance of queries in one process: the whole flow from a query to a live result."""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from viewkeep.analysis import Analysis, analyze_query
from viewkeep.engine.intake import Change, Intake, Row, known_relation, rows_of
from viewkeep.engine.reference import ReferenceEngine
from viewkeep.errors import QueryError, SchemaError, ViewkeepError, did_you_mean
from viewkeep.plan.choose import names, plan
from viewkeep.plan.payload import Payload, plan_payload
from viewkeep.plan.program import Program
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Constraints
from viewkeep.query.notation import parse
from viewkeep.rings import Ring

if TYPE_CHECKING:
    from viewkeep.workload import Workload

ENGINES = ("auto", "reference")
MODES = ("eager", "lazy")
MAGIC = b"viewkeep state 1\n"


@dataclass(frozen=True)
class OutputChange:
    """An output tuple whose payload changed; None stands for absent."""

    row: Row
    before: Any
    after: Any


@dataclass(frozen=True)
class Options:
    """How a query is maintained."""

    strategy: str = "auto"
    output: str = "factorized"
    mode: str = "eager"
    ring: Ring[Any] | None = None
    lifts: Mapping[str, Callable[[Any], Any]] | None = field(default=None, hash=False)


class Maintainer:
    """A query kept up to date; made by `maintain`.

    Results always equal the query run from scratch on what was loaded and updated, also while
    some multiplicities are negative. An error leaves everything as it was.
    """

    def __init__(self, query: ConjunctiveQuery, options: Options) -> None:
        self.query, self.options = query, options
        self.program: Program = plan(query, options.strategy, options.output)
        self.payload: Payload = plan_payload(query, options.ring, options.lifts)
        self.engine = ReferenceEngine(self.program, self.payload.ring)
        self._intakes = {r: Intake(query, r, self.payload) for r in query.relations}
        self._subscribers: list[Callable[[list[OutputChange]], None]] = []
        self._pending: dict[tuple[int, Row], Any] = {}
        self._lazy = options.mode == "lazy"
        self._version = 0

    # --- changing ---------------------------------------------------------------------------------

    def load(self, data: Mapping[str, Any]) -> None:
        """Preprocessing: fill the relations, in one pass where the query's class allows it.

        On a maintainer that already holds data, the rows are added as a batch.
        """
        changes = [
            change
            for relation, rows in data.items()
            for change in self._checked(relation, rows, None, loading=True)
        ]
        if self._version or self._pending or self._subscribers:
            self._take(changes)
            return
        if changes:
            self._version += 1
        atoms = dict(enumerate(names(self.query)))
        self.engine.load(changes, atoms)

    def update(self, relation: str, row: Row, multiplicity: int = 1) -> None:
        """Insert one tuple; with a negative multiplicity, delete it."""
        intake = self._intakes.get(relation) or known_relation(self._intakes, relation, self.query)
        changes = intake.changes(row, multiplicity)
        if self._lazy or self._subscribers:
            self._take(changes)
            return
        self._version += 1
        apply = self.engine.apply
        for atom, key, payload in changes:
            apply(atom, key, payload)

    def update_batch(
        self, relation: str, rows: Any, multiplicities: Iterable[int] | None = None
    ) -> None:
        """Many updates to one relation; all or, if one is refused, none."""
        self._take(self._checked(relation, rows, multiplicities))

    def check_batch(
        self, relation: str, rows: Any, multiplicities: Iterable[int] | None = None
    ) -> None:
        """Refuse what `update_batch` would refuse, and change nothing."""
        self._checked(relation, rows, multiplicities)

    def _checked(
        self, relation: str, rows: Any, multiplicities: Iterable[int] | None, loading: bool = False
    ) -> list[Change]:
        """The net changes of a batch, atom by atom, after every row was checked."""
        intake = known_relation(self._intakes, relation, self.query)
        tuples = rows_of(rows, relation, intake.columns)
        net: dict[Row, int] = {}
        for row, count in _with_counts(tuples, multiplicities):
            intake.changes(row, count, loading)
            net[row] = net.get(row, 0) + count
        changes = [
            change
            for row, count in net.items()
            if count
            for change in intake.changes(row, count, loading)
        ]
        return sorted(changes, key=lambda change: change[0])

    def _take(self, changes: list[Change]) -> None:
        self._version += 1
        if self._lazy:
            add, is_zero = self.payload.ring.add, self.payload.ring.is_zero
            for atom, key, payload in changes:
                self.engine.counter[0] += 1
                known = self._pending.pop((atom, key), None)
                total = payload if known is None else add(known, payload)
                if not is_zero(total):
                    self._pending[atom, key] = total
        elif self._subscribers:
            self._apply_and_tell(changes)
        else:
            self._apply(changes)

    def _apply(self, changes: Iterable[Change]) -> None:
        for atom, key, payload in changes:
            self.engine.apply(atom, key, payload)

    def flush(self) -> None:
        """Apply what a lazy maintainer has put off; reading does this by itself."""
        if self._pending:
            changes = [(atom, key, p) for (atom, key), p in self._pending.items()]
            self._pending.clear()
            changes.sort(key=lambda change: change[0])
            if self._subscribers:
                self._apply_and_tell(changes)
            else:
                self._apply(changes)

    # --- reading ----------------------------------------------------------------------------------

    def enumerate(self, given: Mapping[str, Any] | None = None) -> Iterator[tuple[Row, Any]]:
        """Distinct output tuples, in head order, with their payloads.

        The payload is the count, or a tuple of the aggregates. Inputs of an access pattern are
        given. Updating meanwhile ends the enumeration with an error.
        """
        inputs = self._given(given)
        self.flush()
        return self._read(inputs)

    def _read(self, inputs: dict[str, Any]) -> Iterator[tuple[Row, Any]]:
        version, result = self._version, self.payload.result
        width = len(self.query.outputs)
        for row, payload in self.engine.enumerate(inputs):
            yield row[:width], result(payload)
            if self._version != version:
                raise ViewkeepError("the data changed during an enumeration: start a new one")

    def lookup(self, row: Row, given: Mapping[str, Any] | None = None) -> Any:
        """The payload of one output tuple; zero, or None for aggregates, if it is absent."""
        inputs = self._given(given)
        if not isinstance(row, tuple) or len(row) != len(self.query.outputs):
            raise SchemaError(f"{row!r} does not fit the output ({', '.join(self.query.outputs)})")
        self.flush()
        return self._present(self._element(row, inputs))

    def value(self) -> Any:
        """The result of a query without output variables."""
        if self.query.outputs:
            head = ", ".join(self.query.outputs)
            raise QueryError(f"query {self.query.name} has outputs ({head}): use enumerate()")
        self.flush()
        return self.payload.result(self._element((), self._given(None)))

    def subscribe(self, callback: Callable[[list[OutputChange]], None]) -> None:
        """Call with the change of the output after every update or batch."""
        if self.query.inputs and not self.program.listed:
            raise QueryError(
                f'query {self.query.name} has inputs: its changes are told with output="list" only'
            )
        self._subscribers.append(callback)

    @property
    def steps(self) -> int:
        """Elementary steps so far: what the bounds are checked with."""
        return self.engine.steps

    @property
    def analysis(self) -> Analysis:
        """What is possible for the query."""
        return analyze_query(self.query)

    def sizes(self) -> dict[str, int]:
        """How many entries each map has."""
        return {name: len(relation) for name, relation in self.engine.maps.items()}

    def _element(self, row: Row, inputs: dict[str, Any]) -> Any:
        head = row
        if len(self.program.enumerator.head) > len(row):
            head = (*row, *(inputs[v] for v in self.query.inputs))
        return self.engine.lookup(head, inputs)

    def _present(self, element: Any) -> Any:
        if self.query.aggregates and self.payload.ring.is_zero(element):
            return None
        return self.payload.result(element)

    def _given(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        inputs = dict(given or {})
        for name in inputs:
            if name not in self.query.inputs:
                hint = did_you_mean(name, self.query.inputs)
                raise QueryError(f'query {self.query.name} has no input "{name}"{hint}')
        missing = [v for v in self.query.inputs if v not in inputs]
        if missing:
            raise QueryError(
                f"query {self.query.name} needs its inputs: given={{{missing[0]!r}: ...}}"
            )
        return inputs

    # --- telling subscribers ----------------------------------------------------------------------

    def _apply_and_tell(self, changes: Iterable[Change]) -> None:
        before: dict[Row, Any] = {}
        for atom, key, payload in changes:
            for head in self.engine.output_change(atom, key, payload):
                if head not in before:
                    before[head] = self._state(head)
            self.engine.apply(atom, key, payload)
        told = [OutputChange(head, old, self._state(head)) for head, old in before.items()]
        changed = [change for change in told if change.before != change.after]
        if changed:
            for callback in list(self._subscribers):
                callback(changed)

    def _state(self, head: Row) -> Any:
        inputs = dict(zip(self.query.inputs, head[len(self.query.outputs) :], strict=True))
        element = self.engine.lookup(head, inputs)
        return None if self.payload.ring.is_zero(element) else self.payload.result(element)

    # --- saving -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file, which is replaced only when all is written."""
        self.flush()
        state = {
            "query": self.query,
            "options": self.options,
            "steps": self.steps,
            "maps": {name: list(r.items()) for name, r in self.engine.maps.items()},
        }
        target = Path(path)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(MAGIC)
                pickle.dump(state, file, protocol=5)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except (OSError, pickle.PicklingError, AttributeError, TypeError) as error:
            temporary.unlink(missing_ok=True)
            raise ViewkeepError(f"cannot save to {target}: {error}") from error

    @staticmethod
    def restore(path: str | os.PathLike[str]) -> "Maintainer":
        """Read what `save` wrote. Only restore files you trust: they hold pickled values."""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise ViewkeepError(f"cannot restore {path}: {error}") from error
        if not content.startswith(MAGIC):
            raise ViewkeepError(f"cannot restore {path}: it was not written by Maintainer.save")
        try:
            state = pickle.loads(content[len(MAGIC) :])
        except Exception as error:  # a damaged pickle may raise anything
            raise ViewkeepError(f"cannot restore {path}: the file is damaged ({error})") from error
        restored = Maintainer(state["query"], state["options"])
        for name, entries in state["maps"].items():
            for row, payload in entries:
                restored.engine.maps[name].add(row, payload)
        restored.engine.counter[0] = state["steps"]
        restored._version = 1
        return restored


@overload
def maintain(query: ConjunctiveQuery | str, *args: Any, **options: Any) -> Maintainer: ...


@overload
def maintain(query: Sequence[ConjunctiveQuery], *args: Any, **options: Any) -> "Workload": ...


def maintain(
    query: ConjunctiveQuery | str | Sequence[ConjunctiveQuery],
    strategy: str = "auto",
    engine: str = "auto",
    epsilon: float = 0.5,
    ring: Ring[Any] | None = None,
    output: str = "factorized",
    mode: str = "eager",
    fds: Iterable[str] = (),
    static: Iterable[str] = (),
    insert_only: bool = False,
    foreign_keys: Iterable[str] = (),
    keys: Iterable[str] = (),
    degrees: Iterable[str] = (),
    lifts: Mapping[str, Callable[[Any], Any]] | None = None,
) -> Any:
    """Keep a query's result fresh under updates; several queries may ride on each other.

    >>> live = maintain("Q(y, x, z) = R(y, x) * S(y, z)")
    >>> live.update("R", (1, 2))
    >>> live.update("S", (1, 3))
    >>> list(live.enumerate())
    [((1, 2, 3), 1)]
    """
    _check("engine", engine, ENGINES)
    _check("mode", mode, MODES)
    if not 0 <= epsilon <= 1:
        raise QueryError(f"epsilon={epsilon}: expected a number between 0 and 1")
    constraints = Constraints.parse(fds, keys, foreign_keys, degrees, static, insert_only)
    parsed = parse(query) if isinstance(query, str) else query
    if isinstance(parsed, ConjunctiveQuery):
        options = Options(strategy, output, mode, ring, lifts)
        return Maintainer(parsed.with_constraints(constraints), options)
    if ring is not None or lifts is not None:
        raise QueryError("several queries are maintained over counts: give no ring or lifts")
    from viewkeep.workload import Workload  # a workload is made of maintainers

    return Workload(list(parsed), constraints, Options(strategy, output, mode, ring, lifts))


def _with_counts(
    rows: Iterable[Row], multiplicities: Iterable[int] | None
) -> Iterator[tuple[Row, int]]:
    if multiplicities is None:
        return ((row, 1) for row in rows)
    listed, counts = list(rows), list(multiplicities)
    if len(listed) != len(counts):
        raise SchemaError(f"{len(listed)} rows, but {len(counts)} multiplicities")
    return zip(listed, counts, strict=True)


def _check(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        extra = " (the compiled engine is not available yet)" if value == "compiled" else ""
        raise QueryError(f'{name}="{value}": expected one of {", ".join(allowed)}{extra}')
