"""Tables that the official connector has made, brought back version by version."""

import json
import shutil
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.diffs.harness import Bag

FOLDER = Path(__file__).parents[1] / "data" / "delta"
NAMES = sorted(path.stem for path in FOLDER.glob("*.zip"))


class ConnectorTable:
    """A table in a folder of its own, at any version of its history."""

    def __init__(self, name: str, base: Path) -> None:
        self._all, self.place = base / f"{name}-all", base / name
        with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
            archive.extractall(self._all)
        self.versions = json.loads((self._all / "versions.json").read_text())
        shutil.copytree(self._all, self.place, ignore=shutil.ignore_patterns("_delta_log"))

    @property
    def newest(self) -> int:
        """The last version of its history."""
        return max(map(int, self.versions))

    def go_to(self, version: int) -> None:
        """Let the table be at a version, with the checkpoints that it had then."""
        log, whole = self.place / "_delta_log", self._all / "_delta_log"
        shutil.rmtree(log, ignore_errors=True)
        shutil.copytree(whole, log)
        for path in log.iterdir():
            number = path.name.partition(".")[0]
            if number.isdigit() and int(number) > version:
                path.unlink()
        if version < self.newest:
            (log / "_last_checkpoint").unlink(missing_ok=True)

    def forget_entries(self) -> None:
        """Remove the entries before the last checkpoint, as a clean-up of the log does."""
        log = self.place / "_delta_log"
        checkpoints = [int(p.name[:20]) for p in log.iterdir() if ".checkpoint." in p.name]
        for number in range(max(checkpoints)):
            (log / f"{number:020d}.json").unlink(missing_ok=True)

    def columns(self, version: int) -> dict[str, str]:
        """The columns and types of a version."""
        return dict(self.versions[str(version)]["columns"])

    def rows(self, version: int) -> list[dict[str, Any]]:
        """The rows of a version, as JSON tells their values."""
        return [json.loads(each) for each in self.versions[str(version)]["rows"]]

    def bag(self, version: int) -> Bag:
        """The rows of a version as tuples."""
        return Counter(tuple(map(_plain, each.values())) for each in self.rows(version))


def _plain(value: Any) -> Any:
    """A value of JSON as one that can be compared with others."""
    if isinstance(value, float):
        return round(value, 7)
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value
