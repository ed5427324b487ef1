"""Accesses of a refresh as the paper counts them (id_based_ivm, section 6, tables 2 and 3).

With d price updates of the devices and parts, the model says

    V    tuple-based  d (a + 2 p)         ID-based  d (1 + p)
    V'   tuple-based  d (a + 2 p g)       ID-based  d (1 + p + 2 p g)

p   rows of V per updated part
g   groups per row of V among them
a   accesses per updated part that the tuple-based script computes its diff of V with

The model takes an update and the reading of what it changes for one step (UPDATE RETURNING). A
script reads kept rows in its computations and finds them again when it applies a diff.
"""

from dataclasses import dataclass

from bench._devices import Connection, Devices
from viewkeep.diffs.script import Compute, Script
from viewkeep.execute.report import RunReport
from viewkeep.query.algebra import Stored
from viewkeep.query.traversal import walk


@dataclass(frozen=True)
class Accesses:
    """Accesses of one refresh: computations from tables and diffs, those that read what is kept,
    and the changes of what is kept."""

    from_tables: int
    from_kept: int
    applied: int

    @property
    def in_one_step(self) -> int:
        """What is read of kept relations and then changed costs once."""
        return self.from_tables + self.applied


def accesses_of(script: Script, report: RunReport) -> Accesses:
    """The accesses of a run that counted them."""
    kept = {each.name for each in script.materialized}
    readers = {
        each.name
        for each in script.statements
        if isinstance(each, Compute)
        for leaf in walk(each.query)
        if isinstance(leaf, Stored) and leaf.name in kept
    }
    costs = {each.name: each.accesses or 0 for each in report.statements}
    computed = [each.name for each in script.computes()]
    return Accesses(
        sum(costs[name] for name in computed if name not in readers),
        sum(costs[name] for name in readers),
        sum(cost for name, cost in costs.items() if name not in computed),
    )


def model_factors(connection: Connection, data: Devices, size: int) -> tuple[float, float]:
    """p and g of the last price updates, from the tables."""
    phones = " AND category = 'phone'" if data.selection else ""
    rows = "SELECT count(*), count(DISTINCT did) FROM devices_parts JOIN devices USING (did) "
    where = f'WHERE pid IN (SELECT pid FROM "du(parts)"){phones}'
    [(joined, groups)] = connection.execute(rows + where).fetchall()
    return joined / size, groups / joined
