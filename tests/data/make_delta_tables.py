"""Makes the tables in `delta/`: small Delta tables of the official connector, one for each feature.

Needs Spark with the connector's jars; each table is packed with the rows of its versions, as the
connector reads them:

    python tests/data/make_delta_tables.py --jars delta-spark.jar,delta-storage.jar
"""

import argparse
import json
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import struct, to_json

FOLDER = Path(__file__).parent / "delta"

CHANGES = (
    "INSERT INTO {t} VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30), (4, NULL, 40)",
    "UPDATE {t} SET n = n + 1 WHERE id IN (1, 3)",
    "DELETE FROM {t} WHERE id = 2",
    "MERGE INTO {t} USING (SELECT * FROM VALUES (3, 'cc', 33), (5, 'e', 50) AS s(id, name, n)) s "
    "ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
)
OPTIMIZE = "OPTIMIZE {t}"
PLAIN = "id INT, name STRING, n BIGINT"


def table(columns: str, properties: Sequence[str] = (), more: str = "") -> str:
    """The statement that makes a table."""
    listed = f" TBLPROPERTIES ({', '.join(properties)})" if properties else ""
    return f"CREATE TABLE {{t}} ({columns}) USING delta {more}{listed}"


def mapped(mode: str) -> list[str]:
    """The properties of a table with column mapping."""
    return [f"delta.columnMapping.mode = '{mode}'"]


VECTORS = "delta.enableDeletionVectors = true"
FEED = "delta.enableChangeDataFeed = true"
V2 = ["delta.checkpointPolicy = 'v2'", "delta.checkpointInterval = 2"]
TRACKED = ["delta.enableRowTracking = true", "delta.enableInCommitTimestamps = true"]

RENAMED = (
    "ALTER TABLE {t} RENAME COLUMN n TO amount",
    "ALTER TABLE {t} ADD COLUMN extra STRING",
    "INSERT INTO {t} VALUES (6, 'f', 60, 'x')",
    "UPDATE {t} SET amount = amount + 1 WHERE id IN (4, 6)",
    "ALTER TABLE {t} DROP COLUMN name",
    "INSERT INTO {t} VALUES (7, 70, 'y')",
)

TABLES: dict[str, tuple[str, ...]] = {
    "deletion_vectors": (
        table(PLAIN, [VECTORS]),
        *CHANGES,
        OPTIMIZE,
        "RESTORE {t} VERSION AS OF 2",
    ),
    "vectors_and_feed": (table(PLAIN, [VECTORS, FEED]), *CHANGES),
    "mapping_by_name": (table(PLAIN, mapped("name")), *CHANGES, *RENAMED),
    "mapping_by_id": (table(PLAIN, mapped("id")), *CHANGES, *RENAMED),
    "mapping_and_feed": (table(PLAIN, [*mapped("name"), FEED]), *CHANGES, *RENAMED[:4]),
    "mapping_later": (
        table(PLAIN),
        *CHANGES,
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        *RENAMED,
    ),
    "mapping_nested": (
        table(
            "id INT, s STRUCT<a: INT, b: STRUCT<c: STRING>>, l ARRAY<STRUCT<x: INT>>, "
            "m MAP<STRING, STRUCT<y: INT>>",
            mapped("name"),
        ),
        "INSERT INTO {t} SELECT id, named_struct('a', id + 1, 'b', named_struct('c', 'v')), "
        "array(named_struct('x', id)), map('k', named_struct('y', id)) "
        "FROM VALUES (1), (2), (3) AS v(id)",
        "ALTER TABLE {t} RENAME COLUMN s.a TO aa",
        "UPDATE {t} SET s.aa = 9 WHERE id = 2",
    ),
    "mapping_with_partitions": (
        table(PLAIN, mapped("name"), "PARTITIONED BY (name)"),
        *CHANGES,
        "ALTER TABLE {t} RENAME COLUMN name TO kind",
        "INSERT INTO {t} VALUES (6, 'a b', 60)",
    ),
    "v2_checkpoints": (
        table(PLAIN, [*V2, VECTORS]),
        *CHANGES,
        OPTIMIZE,
        "INSERT INTO {t} VALUES (6, 'f', 60)",
        "DELETE FROM {t} WHERE id = 6",
        "INSERT INTO {t} VALUES (7, 'g', 70)",
    ),
    "row_tracking": (table(PLAIN, [*TRACKED, VECTORS]), *CHANGES, OPTIMIZE),
    "clustering": (table(PLAIN, (), "CLUSTER BY (id, n)"), *CHANGES, OPTIMIZE),
    "widening": (
        table(
            "id INT, b TINYINT, f FLOAT, m DECIMAL(5, 2), d DATE, i INT, j INT",
            ["delta.enableTypeWidening = true", "delta.feature.timestampNtz = 'supported'"],
        ),
        "INSERT INTO {t} VALUES (1, 1, 0.1, 1.25, DATE'2026-01-01', 7, 8), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL)",
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        "ALTER TABLE {t} ALTER COLUMN b TYPE INT",
        "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
        "ALTER TABLE {t} ALTER COLUMN m TYPE DECIMAL(10, 4)",
        "ALTER TABLE {t} ALTER COLUMN d TYPE TIMESTAMP_NTZ",
        "ALTER TABLE {t} ALTER COLUMN i TYPE DOUBLE",
        "ALTER TABLE {t} ALTER COLUMN j TYPE DECIMAL(12, 1)",
        "INSERT INTO {t} VALUES (5000000000, 100000, 0.1, 12345.6789, "
        "TIMESTAMP_NTZ'2026-01-01 12:00:00', 7.5, 8.5)",
        "UPDATE {t} SET b = 2 WHERE id = 1",
    ),
    "identity_and_generated": (
        table(
            "id BIGINT GENERATED ALWAYS AS IDENTITY, name STRING, n BIGINT DEFAULT 5, "
            "twice BIGINT GENERATED ALWAYS AS (n * 2)",
            ["delta.feature.allowColumnDefaults = 'supported'"],
        ),
        "INSERT INTO {t} (name, n) VALUES ('a', 10), ('b', 20)",
        "INSERT INTO {t} (name) VALUES ('c')",
        "UPDATE {t} SET n = 11 WHERE name = 'a'",
    ),
    "all_features": (
        table(
            PLAIN,
            [*mapped("name"), VECTORS, *V2, *TRACKED, "delta.enableTypeWidening = true"],
            "CLUSTER BY (id)",
        ),
        *CHANGES,
        OPTIMIZE,
        *RENAMED[:4],
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        "INSERT INTO {t} VALUES (5000000000, 'big', 1, 'z')",
        "DELETE FROM {t} WHERE id = 4",
    ),
    "variant": (
        table("id INT, v VARIANT"),
        "INSERT INTO {t} SELECT 1, parse_json('{{\"a\": 1}}')",
    ),
}


def make(spark: SparkSession, name: str, statements: Sequence[str], base: Path) -> None:
    """Make one table, and pack it with the rows of its versions."""
    place = base / name
    reference = f"delta.`{place}`"
    for statement in statements:
        spark.sql(statement.format(t=reference))
    newest = max(int(e.stem) for e in (place / "_delta_log").glob("[0-9]" * 20 + ".json"))
    versions = {}
    for version in range(newest + 1):
        frame = spark.sql(f"SELECT * FROM {reference} VERSION AS OF {version}")
        versions[version] = {
            "columns": [(each.name, each.dataType.simpleString()) for each in frame.schema],
            "rows": sorted(
                row for [row] in frame.select(to_json(struct("*")).alias("row")).collect()
            ),
        }
    (place / "versions.json").write_text(json.dumps(versions, indent=1))
    with zipfile.ZipFile(FOLDER / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(place.rglob("*")):
            if path.is_file() and path.suffix != ".crc":
                archive.write(path, path.relative_to(place))


def main() -> None:
    """Make the tables that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jars", required=True)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    builder = SparkSession.builder.master("local[1]").config("spark.jars", arguments.jars)
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.jsonGenerator.ignoreNullFields": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    FOLDER.mkdir(exist_ok=True)
    base = Path(tempfile.mkdtemp())
    for name, statements in TABLES.items():
        if not arguments.names or name in arguments.names:
            try:
                make(spark, name, statements, base)
                print(name, (FOLDER / f"{name}.zip").stat().st_size, flush=True)
            except Exception as error:
                print(name, "failed:", str(error)[:500], flush=True)
    shutil.rmtree(base)
    spark.stop()


if __name__ == "__main__":
    main()
