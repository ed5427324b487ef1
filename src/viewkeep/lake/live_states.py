"""Kept states of live views, with the versions of tables that they reflect.

<lake>/_viewkeep/live/<view>/<state>          the engine's state
<lake>/_viewkeep/live/<view>/current.json     which state counts, and the versions it reflects

A state and its versions come into force together, by the name of one file: whoever resumes goes on
with the first change that the state has not seen.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from viewkeep.lake.catalog import Catalog, TableDefinition, ViewDefinition
from viewkeep.lake.lake import Lake
from viewkeep.tables.log.delta import StorageError
from viewkeep.tables.log.durable import local_path

CURRENT = "current.json"
OLD = 60.0
"""Seconds after which a state that counts no more is removed: somebody may just read it."""


@dataclass(frozen=True)
class Pin:
    """A version of a table, and what tells it from one of another history."""

    version: int
    fingerprint: str

    @staticmethod
    def of(lake: Lake, definition: TableDefinition, version: int) -> "Pin":
        """A version of a table as it is now."""
        return Pin(version, lake.at(definition.location).fingerprint(version))

    def is_current(self, lake: Lake, definition: TableDefinition) -> bool:
        """Whether the table still has the version that was seen."""
        table = lake.at(definition.location)
        return self.version <= table.version() and bool(
            table.has_fingerprint(self.version, self.fingerprint)
        )


@dataclass(frozen=True)
class LiveState:
    """The file of a kept state, the definition that it is of, and the versions it reflects."""

    file: Path
    build: str
    pins: Mapping[str, Pin]


def saved_state(lake: Lake, definition: ViewDefinition) -> LiveState | None:
    """The state that was kept last; None if there is none, or none of this definition."""
    if local_path(lake.uri) is None:
        return None
    folder = _folder(lake, definition.name)
    with suppress(OSError, ValueError, KeyError, TypeError):
        about = json.loads((folder / CURRENT).read_text(encoding="utf-8"))
        pins = {name: Pin(**pin) for name, pin in about["tables"].items()}
        if about["build"] == definition.build:
            return LiveState(folder / about["state"], about["build"], pins)
    return None


def save_state(
    lake: Lake, definition: ViewDefinition, write: Callable[[Path], Mapping[str, Pin]]
) -> None:
    """Keep what `write` puts into a file, with the versions that it returns."""
    folder = _folder(lake, definition.name)
    folder.mkdir(parents=True, exist_ok=True)
    state = f"{uuid4().hex}.state"
    pins = {name: asdict(pin) for name, pin in write(folder / state).items()}
    about = {"state": state, "build": definition.build, "tables": pins}
    draft = folder / f".{state}.json"
    draft.write_text(json.dumps(about), encoding="utf-8")
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.replace(folder / CURRENT)
    for each in folder.glob("*.state"):
        if each.name != state and each.stat().st_mtime < time.time() - OLD:
            each.unlink(missing_ok=True)


def versions_kept(lake: Lake, catalog: Catalog) -> list[tuple[str, int]]:
    """The versions of tables that kept states go on from."""
    states = [saved_state(lake, each) for each in catalog.views.values()]
    pins = [pin for each in states if each is not None for pin in each.pins.items()]
    return [(name, pin.version) for name, pin in pins]


def _folder(lake: Lake, view: str) -> Path:
    place = local_path(lake.uri)
    if place is None:
        raise StorageError(f"{lake.uri}: states of live views are kept on local disks only")
    return Path(place) / lake.live_folder(view)
