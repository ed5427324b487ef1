"""Workload A in Pathway, run by bench/engine.py in an environment of its own.

Counts per key of three tables, joined: every batch of the stream is one commit. Prints how long it
took in all; `--load-only` leaves the stream out, so that the difference is the time of the stream.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pathway as pw

BATCH = 1_000


class Row(pw.Schema):
    """A row of a relation."""

    y: int
    v: int


def read(path: Path) -> np.ndarray:
    """Relation, two values, multiplicity."""
    return np.fromfile(path, np.int64).reshape(-1, 4)


class Feed(pw.io.python.ConnectorSubject):
    """Rows of one relation: those to load, then its batches of the stream."""

    def __init__(self, relation: int, loaded: np.ndarray, stream: np.ndarray) -> None:
        super().__init__()
        self._relation, self._loaded, self._stream = relation, loaded, stream

    def run(self) -> None:
        """Load in one commit, then one commit for each batch."""
        self._put(self._loaded[self._loaded[:, 0] == self._relation])
        own = self._stream[self._stream[:, 0] == self._relation]
        for start in range(0, len(own), BATCH):
            self._put(own[start : start + BATCH])

    def _put(self, rows: np.ndarray) -> None:
        for _, y, v, _ in rows.tolist():
            self.next(y=y, v=v)
        self.commit()


def main() -> None:
    """Run until the stream ends."""
    folder = Path(sys.argv[1])
    loaded, stream = read(folder / "load.bin"), read(folder / "updates.bin")
    stream = stream[stream[:, 3] > 0]  # inserts only: removal by value needs keys of our own
    stream = stream[:0] if "--load-only" in sys.argv else stream
    tables = [
        pw.io.python.read(Feed(relation, loaded, stream), schema=Row, autocommit_duration_ms=None)
        for relation in range(3)
    ]
    counts = [t.groupby(t.y).reduce(t.y, n=pw.reducers.count()) for t in tables]
    first, second, third = counts
    joined = first.join(second, first.y == second.y).select(first.y, n=first.n * second.n)
    result = joined.join(third, joined.y == third.y).select(joined.y, n=joined.n * third.n)
    pw.io.subscribe(result, on_change=lambda key, row, time, is_addition: None)
    start = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    print(json.dumps({"updates": len(stream), "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
