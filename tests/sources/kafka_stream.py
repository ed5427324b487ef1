"""A process that takes a topic of Kafka into a table by a stream of Spark, and dies where told.

Options in JSON: `lake`, `address`, `topic`, `jars`, `checkpoint`, and `dies`: the number of the
batch at which the process kills itself, and whether "before" or "after" that is in the table.
"""

import json
import os
import signal
import sys
from typing import Any

from viewkeep import Keeper
from viewkeep.execute.spark.session import session


def main(options: dict[str, Any]) -> None:
    """Run the stream until it has taken in what the topic holds."""
    sink = Keeper(options["lake"], durable=False).sink("orders", True, "debezium")

    def take_in(batch: Any, batch_id: int) -> None:
        if options["dies"] == [batch_id, "before"]:
            os.kill(os.getpid(), signal.SIGKILL)
        sink(batch, batch_id)
        if options["dies"] == [batch_id, "after"]:
            os.kill(os.getpid(), signal.SIGKILL)

    spark = session(
        name="stream", spark__jars=",".join(options["jars"]), spark__sql__shuffle__partitions="1"
    )
    source = spark.readStream.format("kafka").options(
        **{
            "kafka.bootstrap.servers": options["address"],
            "subscribe": options["topic"],
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "60",
        }
    )
    writer = source.load().writeStream.foreachBatch(take_in).trigger(availableNow=True)
    writer.option("checkpointLocation", options["checkpoint"]).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
