"""What a version of a view reflects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Pins = Mapping[str, int]
"""A version for each table or view, by name."""

WRITTEN = "written"
"""The plan of rows that were computed beside the lake: without hidden columns and caches."""


@dataclass(frozen=True)
class ViewState:
    """The versions that a view was brought to, and the versions of its caches.

    `build` tells definitions apart: a view of an older build is not the view that is defined now.
    `inputs` are the tables and views that it reads, `tables` all tables below it; `identities`
    tell whether an input was removed and made anew since. `plan` tells whether the rows and caches
    are those that the view's plan keeps: another version of Viewkeep may plan it in another way.
    `fingerprints` tell whether a version is still the commit that was seen: a table that is put
    back from a backup uses its numbers again. `clock` is the moment that a view which reads the
    clock was computed at, in microseconds since 1970. `shared_caches` are the keys of caches that
    other views may use as well, by their names.

    >>> state = ViewState("b1", {"cost": 4}, {"parts": 7}, {"cache_1": 2})
    >>> ViewState.from_notes(state.notes()) == state
    True
    """

    build: str
    inputs: Pins
    tables: Pins
    caches: Pins = field(default_factory=dict)
    identities: Mapping[str, str] = field(default_factory=dict)
    plan: str = ""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    cache_fingerprints: Mapping[str, str] = field(default_factory=dict)
    clock: int | None = None
    shared_caches: Mapping[str, str] = field(default_factory=dict)

    def notes(self) -> dict[str, Any]:
        """The state as JSON values."""
        return {
            "build": self.build,
            "inputs": dict(self.inputs),
            "tables": dict(self.tables),
            "caches": dict(self.caches),
            "identities": dict(self.identities),
            "plan": self.plan,
            "fingerprints": dict(self.fingerprints),
            "cache_fingerprints": dict(self.cache_fingerprints),
            **({} if self.clock is None else {"clock": self.clock}),
            **({"shared_caches": dict(self.shared_caches)} if self.shared_caches else {}),
        }

    @staticmethod
    def from_notes(notes: Mapping[str, Any]) -> "ViewState":
        """The state of a commit's notes; those of older releases have no fingerprints."""
        return ViewState(
            notes["build"],
            notes["inputs"],
            notes["tables"],
            notes["caches"],
            notes["identities"],
            notes.get("plan", ""),
            notes.get("fingerprints", {}),
            notes.get("cache_fingerprints", {}),
            notes.get("clock"),
            notes.get("shared_caches", {}),
        )

    def is_ahead_of(self, inputs: Pins) -> bool:
        """Whether another refresh has seen newer versions."""
        return any(version > inputs.get(name, version) for name, version in self.inputs.items())
