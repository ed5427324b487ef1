"""Changes that a lazy maintainer has put off; those that cancel each other are never applied."""

from operator import itemgetter
from typing import Any

from viewkeep.engine.intake import Change, Row
from viewkeep.rings import Ring


class PendingChanges:
    """The sum of the changes of each tuple, where it is not zero."""

    def __init__(self, ring: Ring[Any]) -> None:
        self._ring = ring
        self._totals: dict[tuple[int, Row], Any] = {}

    def __bool__(self) -> bool:
        return bool(self._totals)

    def add(self, changes: list[Change]) -> int:
        """Add changes, all or, if the ring refuses one, none; returns the number of steps."""
        ring = self._ring
        totals = [
            (atom, key, ring.add(self._totals.get((atom, key), ring.zero), payload))
            for atom, key, payload in changes
        ]
        for atom, key, total in totals:
            self._totals.pop((atom, key), None)
            if not ring.is_zero(total):
                self._totals[atom, key] = total
        return len(totals)

    def changes(self) -> list[Change]:
        """What is to be applied, atom by atom."""
        changes = [(atom, key, payload) for (atom, key), payload in self._totals.items()]
        return sorted(changes, key=itemgetter(0))

    def clear(self) -> None:
        """Forget all changes, once they are applied."""
        self._totals.clear()
