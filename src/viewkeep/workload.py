"""Several queries maintained together, some riding on the enumeration of others.

A rider is maintained over the outputs of its carriers (recent_increments_in_ivm, section 4.2).
Enumerating a carrier passes its changed tuples on, at constant cost per tuple; only then does the
rider see them. Reading a rider whose carrier has changed enumerates that carrier first, so the
result is always right; to pay for it where it is covered, enumerate the carrier yourself before.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import RLock
from typing import Any

from viewkeep.analysis.analyze import WorkloadAnalysis, analyze_workload, constrain
from viewkeep.analysis.cascade import Cascade
from viewkeep.engine.frames import as_table
from viewkeep.engine.intake import Row, intakes_of
from viewkeep.errors import QueryError, SchemaError, ViewkeepError, did_you_mean
from viewkeep.maintainer import Maintainer
from viewkeep.options import Options
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Constraints


class Workload:
    """Queries by name; updates go to all of them. Threads that share a workload take turns.

    >>> from viewkeep.query.notation.parse import parse
    >>> q1 = parse("Q1(a, b, c, d) = R(a, b) * S(b, c) * T(c, d)")
    >>> q2 = parse("Q2(a, b, c) = R(a, b) * S(b, c)")
    >>> work = Workload([q2, q1], Constraints(), Options())
    >>> work.load({"R": [(1, 2)], "S": [(2, 3)], "T": [(3, 4)]})
    >>> list(work["Q2"].enumerate()), list(work["Q1"].enumerate())
    ([((1, 2, 3), 1)], [((1, 2, 3, 4), 1)])
    """

    def __init__(
        self, queries: Sequence[ConjunctiveQuery], constraints: Constraints, options: Options
    ) -> None:
        if not queries:
            raise QueryError("a workload needs at least one query")
        own = constrain(queries, constraints)
        self.analysis: WorkloadAnalysis = analyze_workload(own)
        self.lock = RLock()
        self._members = {query.name: WorkloadMember(self, query, options) for query in own}
        self.relations = tuple(dict.fromkeys(r for query in own for r in query.relations))
        for name in self._members:
            if name in self.relations:
                raise QueryError(f'"{name}" is the name of a query and of a relation')

    def __getitem__(self, name: str) -> "WorkloadMember":
        if not isinstance(name, str) or name not in self._members:
            hint = did_you_mean(name, self._members)
            raise QueryError(f'no query "{name}" ({", ".join(self._members)}){hint}')
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __repr__(self) -> str:
        return f"<Workload of {', '.join(self._members)}>"

    def load(self, data: Mapping[str, Any]) -> None:
        """Fill the relations of all queries."""
        if not isinstance(data, Mapping):
            raise SchemaError(f"load() takes rows by relation, not {type(data).__name__}")
        rows = {relation: _reusable(content, relation) for relation, content in data.items()}
        for relation, content in rows.items():
            self._check_relation_rows(relation, content, None, loading=True)
        with self.lock:
            for member in self._members.values():
                member.load({r: c for r, c in rows.items() if r in member.own_relations})

    def update(self, relation: str, row: Row, multiplicity: int = 1) -> None:
        """Insert or delete one tuple."""
        self.update_batch(relation, [row], [multiplicity])

    def update_batch(
        self, relation: str, rows: Any, multiplicities: Iterable[int] | None = None
    ) -> None:
        """Many updates to one relation; all queries accept the rows, or none is changed."""
        content = _reusable(rows, relation)
        counts = None if multiplicities is None else _listed(multiplicities)
        self._check_relation_rows(relation, content, counts)
        with self.lock:
            for member in self._members.values():
                if relation in member.own_relations:
                    member.update_batch(relation, content, counts)

    def _check_relation_rows(
        self, relation: str, rows: Any, counts: list[int] | None, loading: bool = False
    ) -> None:
        if not isinstance(relation, str) or relation not in self.relations:
            hint = did_you_mean(relation, self.relations)
            raise QueryError(f'no query has a relation "{relation}"{hint}')
        for member in self._members.values():
            if relation in member.query.relations:
                member.check(relation, rows, counts, loading)


def _listed(multiplicities: Iterable[int]) -> list[int]:
    if not isinstance(multiplicities, Iterable) or isinstance(multiplicities, str | bytes):
        raise SchemaError(f"multiplicities={multiplicities!r}: expected a list of whole numbers")
    return list(multiplicities)


class WorkloadMember:
    """One query of a workload: maintained by itself, or over the outputs of its carriers."""

    def __init__(self, workload: Workload, query: ConjunctiveQuery, options: Options) -> None:
        self.query, self._workload, self._lock = query, workload, workload.lock
        self.cascade: Cascade | None = workload.analysis.cascade_of(query.name)
        carriers = self.cascade.carriers if self.cascade else ()
        maintained = _with_what_may_change(self.cascade.rewriting, query) if self.cascade else query
        self.maintainer = Maintainer(maintained, options)
        self.own_relations = frozenset(maintained.relations) - frozenset(carriers)
        # Also rows that come by way of a carrier must suit the query itself.
        self._intakes = intakes_of(query)
        self._carriers = carriers
        self._passed: dict[str, dict[Row, Any]] = {name: {} for name in carriers}
        self._version = 0
        self._seen = dict.fromkeys(carriers, 0)

    @property
    def version(self) -> int:
        """How often the member's own data has changed, or that of a carrier."""
        return self._version + sum(self._workload[name].version for name in self._carriers)

    def load(self, data: Mapping[str, Any]) -> None:
        """Fill the relations that the member reads directly."""
        self.maintainer.load(data)
        self._version += 1

    def check(
        self, relation: str, rows: Any, counts: list[int] | None, loading: bool = False
    ) -> None:
        """Refuse rows that an update would refuse, without changing anything."""
        self._intakes[relation].net_changes(rows, counts, loading)

    def update_batch(self, relation: str, rows: Any, counts: list[int] | None) -> None:
        """Updates of a relation that the member reads directly."""
        self.maintainer.update_batch(relation, rows, counts)
        self._version += 1

    def enumerate(self, given: Mapping[str, Any] | None = None) -> Iterator[tuple[Row, Any]]:
        """Distinct output tuples with their payloads; riders learn of them on the way."""
        with self._lock:
            self._catch_up()
            version, seen = self.version, dict[Row, Any]()
            output = self.maintainer.enumerate(given)
        while True:
            with self._lock:
                if self.version != version:
                    raise ViewkeepError("the data changed during an enumeration: start a new one")
                step = next(output, None)
                if step is None:
                    self._pass_on(seen, version)
                    return
            seen[step[0]] = step[1]
            yield step

    def _pass_on(self, seen: dict[Row, Any], version: int) -> None:
        """Tell the riders what the output is."""
        for name in self._workload:
            rider = self._workload[name]
            if self.query.name in rider._carriers:
                rider._receive(self.query.name, seen, version)

    def lookup(self, row: Row, given: Mapping[str, Any] | None = None) -> Any:
        """The payload of one output tuple."""
        with self._lock:
            self._catch_up()
            return self.maintainer.lookup(row, given)

    def value(self, given: Mapping[str, Any] | None = None) -> Any:
        """The result of a query without output variables."""
        with self._lock:
            self._catch_up()
            return self.maintainer.value(given)

    @property
    def steps(self) -> int:
        """Elementary steps of this member so far."""
        return self.maintainer.steps

    def _catch_up(self) -> None:
        """Enumerate every carrier that has changed since its tuples were passed on."""
        for name in self._carriers:
            carrier = self._workload[name]
            if self._seen[name] != carrier.version:
                for _ in carrier.enumerate():
                    pass

    def _receive(self, carrier: str, seen: dict[Row, Any], version: int) -> None:
        """Take over a carrier's output as changes against what was passed on before."""
        if self._seen[carrier] == version:
            return
        passed = self._passed[carrier]
        changes = {row: count - passed.get(row, 0) for row, count in seen.items()}
        changes |= {row: -count for row, count in passed.items() if row not in seen}
        rows = [row for row, change in changes.items() if change]
        self.maintainer.update_batch(carrier, rows, [changes[row] for row in rows])
        self._passed[carrier], self._seen[carrier] = seen, version


def _with_what_may_change(rewriting: ConjunctiveQuery, query: ConjunctiveQuery) -> ConjunctiveQuery:
    """The rewriting, which refuses the same updates as the query; carriers only grow as it does."""
    constraints = query.constraints
    static = constraints.static & frozenset(rewriting.relations)
    return rewriting.with_constraints(
        Constraints(static=static, insert_only=constraints.insert_only)
    )


def _reusable(rows: Any, relation: str) -> Any:
    """Rows that can be read more than once: what would be used up becomes a table or a list."""
    table = as_table(rows, relation)
    return list(table) if isinstance(table, Iterator) else table
