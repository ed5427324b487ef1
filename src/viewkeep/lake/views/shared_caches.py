"""Caches of several views that are alike are one table: it is found by what it computes, whatever
views call their tables, and each of its versions tells the versions of the tables that it reflects.

A view reads the version that its state names, as if the cache were its own. One that is about to
write a version which another view has written for the same inputs takes that one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from hashlib import sha256
from threading import Lock
from typing import Any

from viewkeep.diffs.script import Materialized
from viewkeep.query.aggregates import FUNCTIONS
from viewkeep.query.algebra import GroupBy, Node, Scan, Stored, Window
from viewkeep.query.clock import CLOCK
from viewkeep.query.expressions import Literal, OpaqueCall
from viewkeep.query.traversal import inputs_of, rewrite_tree, walk
from viewkeep.query.types.data_types import DOUBLE, FLOAT
from viewkeep.tables.column_names import storable_name
from viewkeep.tables.log.delta import LakeTable, MissingEntryError
from viewkeep.tables.log.memory import forget_logs, log_memory

INPUTS = "inputs"
"""The note of a cache's commit: the versions of the tables that its rows are made from."""
LOOKED_BACK = 4
"""So many versions of a cache are looked at for one that other views have written."""
_KEY_LENGTH = 32
_WRITERS: defaultdict[str, Lock] = defaultdict(Lock)


@dataclass(frozen=True)
class SharedForm:
    """What a cache computes, with names that do not depend on the view; `order` are the columns
    that its files are sorted by."""

    definition: Node
    ids: tuple[str, ...]
    order: tuple[str, ...]

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The tables and views whose versions make its rows."""
        return frozenset(node.name for node in walk(self.definition) if isinstance(node, Scan))

    @cached_property
    def names(self) -> dict[str, str]:
        """The columns of its table by their names in the script."""
        return {name: storable_name(self._shared_name(name)) for name in self.definition.names}

    @cached_property
    def key(self) -> str:
        """What tells it from all other caches."""
        nodes = list(walk(self.definition))
        places = {node: number for number, node in enumerate(nodes)}
        operators = [
            (
                type(node).__name__,
                self._operator_key(node),
                [places[each] for each in inputs_of(node)],
            )
            for node in nodes
        ]
        own = [list(map(self._shared_name, each)) for each in (self.ids, self.order)]
        return sha256(repr((own, operators)).encode()).hexdigest()[:_KEY_LENGTH]

    @cached_property
    def _shared_aliases(self) -> dict[str, str]:
        scans = [node for node in walk(self.definition) if isinstance(node, Scan)]
        aliases = dict.fromkeys(each.alias for each in scans)
        return {alias: f"#{number}" for number, alias in enumerate(aliases, 1)}

    @cached_property
    def _shared_prefixes(self) -> dict[str, str]:
        """What stands before `#` in names of columns that strategies make up: it may come from
        aliases, or be the name of a cache."""
        operators = (node for node in walk(self.definition) if not isinstance(node, Scan))
        parts = (part for node in operators for part in _parts_of_value(node.own_values()))
        names = (part for part in parts if isinstance(part, str) and "#" in part)
        prefixes = dict.fromkeys(name.partition("#")[0] for name in names)
        return {prefix: f"#made{number}" for number, prefix in enumerate(prefixes) if prefix}

    def _shared_name(self, name: str) -> str:
        alias, dot, column = name.rpartition(".")
        if dot and alias in self._shared_aliases:
            return f"{self._shared_aliases[alias]}.{column}"
        prefix, mark, rest = name.partition("#")
        return f"{self._shared_prefixes.get(prefix, prefix)}#{rest}" if mark else name

    def _operator_key(self, node: Node) -> object:
        if isinstance(node, Scan):
            return node.name, repr(node.table), self._shared_aliases[node.alias], node.state
        return self._part_key(node.own_values())

    def _part_key(self, part: object) -> object:
        """A part of an operator as plain values, in which names are those of all views."""
        match part:
            case Literal():
                return "Literal", repr(part)
            case str():
                return self._shared_name(part)
            case tuple():
                return tuple(map(self._part_key, part))
            case _ if is_dataclass(part):
                values = (getattr(part, each.name) for each in fields(part))
                return type(part).__name__, *map(self._part_key, values)
        return type(part).__name__, repr(part)


def writer_of(uri: str) -> Lock:
    """What lets one view of this process after the other write a cache; the later ones then find
    what the first one wrote."""
    return _WRITERS[uri]


def find_version(table: LakeTable, inputs: Mapping[str, list[Any]], since: int) -> int | None:
    """A version of a cache after one that a view has written for these versions of its inputs; once
    it is found, other views of a round need not look."""
    memory, key = log_memory(), ("written for", table.uri, (since, repr(inputs)))
    if memory is not None and key in memory:
        remembered_version: int = memory[key]
        return remembered_version
    version = _version_written_for(table, inputs, since)
    if memory is not None and version is not None:
        memory[key] = version
    return version


def _version_written_for(
    table: LakeTable, inputs: Mapping[str, list[Any]], since: int
) -> int | None:
    forget_logs([table.uri])
    newest = table.version() if table.exists() else -1
    with suppress(MissingEntryError):  # those before were cleaned up
        for version in range(newest, max(since, newest - LOOKED_BACK), -1):
            [commit] = table.log(version - 1, version)
            if (commit.notes or {}).get(INPUTS) == inputs:
                return version
    return None


def shared_form(
    kept: Materialized, order: tuple[str, ...], caches: Iterable[Materialized]
) -> SharedForm | None:
    """How a cache can be shared; None if its rows are not told by its inputs alone."""
    definition = expand_caches(kept.definition, {each.name: each for each in caches})
    if any(map(_depends_on_more, walk(definition))):
        return None
    return SharedForm(definition, kept.ids, order)


def expand_caches(query: Node, caches: Mapping[str, Materialized]) -> Node:
    """A query that computes caches where it would read them."""

    def rule(node: Node) -> Node:
        if isinstance(node, Stored) and node.name in caches:
            return expand_caches(caches[node.name].definition, caches)
        return node

    return rewrite_tree(query, rule)


def _depends_on_more(node: Node) -> bool:
    """Whether rows may depend on how they came about, on the session or on the clock: which of
    equal rows has which number, how many rows are left of a reserve, in which order floats were
    added up, what a function does."""
    match node:
        case Stored() | Window():
            return True
        case Scan():
            return node.table.numbers_copies or node.name == CLOCK
        case GroupBy():
            inexact = any(each.type in (FLOAT, DOUBLE) for each in node.schema)
            if inexact or any(each.function not in FUNCTIONS for each in node.aggregates):
                return True
    return any(isinstance(part, OpaqueCall) for part in _parts_of_value(node.own_values()))


def _parts_of_value(value: object) -> Iterator[object]:
    """A value and all that it is made of."""
    yield value
    if isinstance(value, tuple):
        inner: Iterable[object] = value
    elif is_dataclass(value):
        inner = (getattr(value, each.name) for each in fields(value))
    else:
        return
    for each in inner:
        yield from _parts_of_value(each)
