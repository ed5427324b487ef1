"""Results that are kept in a file while a long benchmark runs: it goes on where it was ended."""

import json
from pathlib import Path
from typing import Any


class Results:
    """What was measured, by key; without a path it is kept in memory alone."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._values = path, dict[str, Any]()
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self._values[entry["key"]] = entry["value"]

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def add(self, key: str, value: Any) -> None:
        """Keep what was measured, as a value of JSON."""
        self._values[key] = value
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "value": value}) + "\n")
