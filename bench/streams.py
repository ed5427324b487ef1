"""A query inside Spark's stateful operator beside the same one in one process: rows per second.

    python -m bench.streams [--rows 2000] [--groups 200] [--batches 4]

Orders of customers come in batches, and the sum of each customer is kept: by
`viewkeep.streaming.maintain_stream` on Spark with two cores, and by `maintain` in this process. The
first batch of Spark starts its workers and is told apart.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from random import Random

import viewkeep as vk
from viewkeep.execute.spark.session import session

QUERY = "Q(cid, region; sum(price)) = orders(cid, oid, price) * customers(cid, region)"
SCHEMA = "cid int, region int, spent bigint"
TYPES = {
    "orders": "cid int, oid int, price int, multiplicity int",
    "customers": "cid int, region int, multiplicity int",
}
Rows = list[tuple[int, ...]]


def batches(rows: int, groups: int, count: int) -> list[dict[str, Rows]]:
    """The rows of each batch; customers come with the first one."""
    random, made = Random(1), []
    for batch in range(count):
        orders = [
            (random.randrange(groups), batch * rows + n, random.randrange(100)) for n in range(rows)
        ]
        customers = [(cid, cid % 7) for cid in range(groups)] if batch == 0 else []
        made.append({"orders": orders, "customers": customers})
    return made


def seconds_on_spark(made: list[dict[str, Rows]], place: Path) -> list[float]:
    """The seconds that each batch takes."""
    spark = session(spark__sql__shuffle__partitions="2")
    for name in TYPES:
        (place / name).mkdir()
    streams = {n: spark.readStream.schema(t).json(str(place / n)) for n, t in TYPES.items()}
    view = vk.streaming.maintain_stream(QUERY, streams, SCHEMA)
    writer = view.writeStream.format("memory").queryName("spent").outputMode("append")
    writer = writer.option("checkpointLocation", str(place / "checkpoint"))
    query, seconds = writer.start(), []
    for number, batch in enumerate(made):
        for name, rows in batch.items():
            names = [each.split()[0] for each in TYPES[name].split(", ")]
            lines = (json.dumps(dict(zip(names, (*row, 1), strict=True))) for row in rows)
            draft = place / name / f".{number}"
            draft.write_text("\n".join(lines) + "\n")
            draft.rename(place / name / f"{number}.json")
        begun = time.monotonic()
        query.processAllAvailable()
        seconds.append(time.monotonic() - begun)
    query.stop()
    spark.stop()
    return seconds


def seconds_in_process(made: list[dict[str, Rows]]) -> list[float]:
    """The same by a maintainer."""
    live, seconds = vk.maintain(QUERY), []
    for batch in made:
        begun = time.monotonic()
        live.update_batches([(name, rows, None) for name, rows in batch.items() if rows])
        seconds.append(time.monotonic() - begun)
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--batches", type=int, default=4)
    arguments = parser.parse_args()
    made = batches(arguments.rows, arguments.groups, arguments.batches)
    with tempfile.TemporaryDirectory() as place:
        spark = seconds_on_spark(made, Path(place))
    for name, seconds in (("Spark", spark), ("in process", seconds_in_process(made))):
        later = sum(seconds[1:]) / max(len(seconds) - 1, 1)
        print(
            f"{name}: first batch {seconds[0]:.2f} s, later ones {later:.3f} s each, "
            f"{arguments.rows / later:,.0f} rows/s"
        )
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
