"""A script with the DuckDB text of its statements, made once and run often.

Most diffs of a batch are empty. The text of a query leaves out what reads them, so that there may
be several texts of one query; each is made when it is first needed.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from viewkeep.diffs.model import DELETE, INSERT
from viewkeep.diffs.prune import prune
from viewkeep.diffs.script import Apply, Compute, Materialized, Script
from viewkeep.execute.duckdb import statements
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.errors import RunError
from viewkeep.query.algebra import Leaf, Node, Scan, Stored
from viewkeep.query.traversal import walk

Sources = Mapping[tuple[str, str] | str, str]

_TEMPORARY = "viewkeep "
"""What the names of temporary tables start with, so that they hide no table of the user's."""


@dataclass(frozen=True)
class Query:
    """The text of a computation, and the relations that it reads: diffs, and kept ones."""

    text: str
    diffs: tuple[Stored, ...]
    materialized: tuple[str, ...]
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True)
class Change:
    """The texts of a change; `conflicts` finds rows of the diff that contradict each other."""

    statement: Apply
    conflicts: str | None
    changes: tuple[str, ...]


class PreparedNames:
    """Where the relations of a script are."""

    def __init__(self, script: Script, sources: Sources) -> None:
        self._sources = sources
        self._computed = {statement.name for statement in script.computes()}
        self._materialized = {each.name for each in script.materialized}

    def resolve(self, leaf: Leaf) -> str:
        """The relation of a leaf."""
        if isinstance(leaf, Scan):
            return self._table_name(leaf)
        return self.stored(leaf.name)

    def stored(self, name: str) -> str:
        """The relation of a diff, a cache or the view."""
        if name in self._computed:
            return f"temp.{quote_name(_TEMPORARY + name)}"
        return self._sources.get(name, quote_name(name))

    def is_kept(self, leaf: Leaf) -> bool:
        """Whether reading it costs accesses: tables, caches and the view do, diffs do not."""
        return isinstance(leaf, Scan) or leaf.name in self._materialized

    def is_input(self, name: str) -> bool:
        """Whether it is a diff that no statement computes."""
        return name not in self._computed and name not in self._materialized

    def _table_name(self, scan: Scan) -> str:
        relation = self._sources.get((scan.name, scan.state))
        if relation is None and scan.state != "post":
            raise RunError(
                f'no relation for table "{scan.name}" as it was before the changes; '
                f"give sources[({scan.name!r}, {scan.state!r})]"
            )
        return relation or quote_name(scan.name)


class PreparedScript:
    """A script for relations that stay where they are."""

    def __init__(
        self, script: Script, sources: Sources, targets: Mapping[str, str] | None = None
    ) -> None:
        """`targets` are relations that changes are made in, instead of the kept ones."""
        self.script = script
        self.names = PreparedNames(script, sources)
        self._targets = targets or {}
        self.computes = tuple(script.computes())
        self._reads = {each.name: _stored_relations(each.query) for each in self.computes}
        self._queries: dict[tuple[str, Set[str]], Query | None] = {}
        targets_by_name = {each.name: each for each in script.materialized}
        self.changes = tuple(self._change_texts(each, targets_by_name) for each in script.applies())
        self.inputs = tuple(self._input_diffs())
        """The diffs that statements read and none computes."""

    def _input_diffs(self) -> list[str]:
        applied = frozenset(each.statement.diff for each in self.changes)
        return sorted(filter(self.names.is_input, applied.union(*self._reads.values())))

    def query(self, statement: Compute, empty: Set[str]) -> Query | None:
        """The query without what reads empty diffs, or None if it has no rows."""
        key = statement.name, self._reads[statement.name] & empty
        if key not in self._queries:
            self._queries[key] = self._query_text(prune(statement.query, empty.__contains__))
        return self._queries[key]

    def _query_text(self, query: Node | None) -> Query | None:
        if query is None:
            return None
        leaves = [each for each in walk(query) if isinstance(each, Leaf)]
        base_leaves = [each for each in leaves if self.names.is_kept(each)]
        diffs = [each for each in leaves if isinstance(each, Stored)]
        return Query(
            statements.query(query, self.names.resolve),
            tuple(each for each in diffs if not self.names.is_kept(each)),
            tuple(dict.fromkeys(map(self.names.resolve, base_leaves))),
            tuple(base_leaves),
        )

    def _change_texts(self, statement: Apply, materialized: Mapping[str, Materialized]) -> Change:
        target = materialized.get(statement.target)
        if target is None:
            raise RunError(f'{statement}: there is no cache or view "{statement.target}"')
        diff = self.names.stored(statement.diff)
        relation = self._targets.get(target.name) or self.names.stored(target.name)
        texts = statements.statements_of_diff(diff, relation, statement.schema, target)
        return Change(statement, _conflict_query(statement, diff, target), tuple(texts))


def _conflict_query(statement: Apply, diff: str, target: Materialized) -> str | None:
    """Which of two different values a row gets would depend on the order of the diff's rows."""
    schema = statement.schema
    ids = target.ids if schema.kind == INSERT else schema.ids
    if schema.kind == DELETE or not (ids or schema.changed or schema.after):
        return None
    return statements.conflicts(diff, schema, ids)


def _stored_relations(query: Node) -> frozenset[str]:
    return frozenset(each.name for each in walk(query) if isinstance(each, Stored))
