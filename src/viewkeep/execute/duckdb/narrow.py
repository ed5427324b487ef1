"""Computations without columns that no later statement reads: DuckDB plans narrow ones faster.

A rule computes whole rows, since it does not know who reads them; most of a statement of a few rows
over wide tables is the planning of columns that nobody asks for.
"""

from collections.abc import Set
from dataclasses import replace

from viewkeep.diffs.rules.build import keep
from viewkeep.diffs.script import Compute, Script
from viewkeep.query.algebra import Node, Stored
from viewkeep.query.columns_read import needed_columns


def narrow(script: Script, whole: Set[str]) -> Script:
    """The script with narrow computations; of those in `whole`, and of what is applied, all columns
    are read."""
    whole = whole | {each.diff for each in script.applies()}
    reads: dict[str, set[str]] = {}
    computes: list[Compute] = []
    for each in reversed(list(script.computes())):
        query = each.query
        if each.name not in whole:
            query = _narrow_query(query, reads.get(each.name, set()))
        for leaf, names in needed_columns(query, never_none=True).items():
            if isinstance(leaf, Stored):
                reads.setdefault(leaf.name, set()).update(names)
        computes.append(replace(each, query=query))
    return replace(script, statements=(*reversed(computes), *script.applies()))


def _narrow_query(query: Node, names: Set[str]) -> Node:
    return keep(query, [name for name in query.names if name in names] or query.names[:1])
