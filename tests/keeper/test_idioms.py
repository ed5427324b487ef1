"""Ways of writing SQL that stand for other SQL, kept without Spark through random changes: at the
end every view is what Spark answers to the text."""

from collections import Counter
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from tests.diffs.harness import expect, plain
from tests.diffs.random_tables import apply_batches, as_arrow, random_batch, random_database
from tests.keeper.lakes import rows
from viewkeep import Keeper, Table
from viewkeep.execute.spark.driver.collect import collect
from viewkeep.sources.play import batch_changes
from viewkeep.tables.arrow_rows import to_rows

TABLES = {
    "orders": Table(
        {"oid": "int", "cid": "int", "status": "string", "placed": "date", "sum": "decimal(6, 2)"},
        key=["oid"],
    ),
    "events": Table(
        {
            "eid": "int",
            "cid": "int",
            "at": "timestamp_ntz",
            "tags": "array<string>",
            "place": "struct<city:string,zip:int>",
        },
        key=["eid"],
    ),
}
UNITS = ["MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"]
_MOMENT, _DAY = "TIMESTAMP_NTZ'2024-01-31 23:10:00'", "DATE'2023-12-30'"
_DISTANCES = [f"timestampdiff({u}, at, {_MOMENT}) AS a{u}" for u in UNITS]
_DISTANCES += [f"datediff({u}, {_DAY}, at) AS b{u}" for u in UNITS]
_MOVES = [f"dateadd({u}, cid, at) AS a{u}" for u in UNITS if u != "MICROSECOND"]
VIEWS = {
    "any_of_rows": "SELECT cid, any(oid > 3) AS x, any(oid > 1) FILTER (WHERE oid < 3) AS y "
    "FROM orders GROUP BY cid",
    "like_any": "SELECT oid FROM orders WHERE status LIKE ANY ('a%', '%b') "
    "OR status NOT LIKE ALL ('c', 'd%')",
    "like_all": "SELECT oid, status NOT LIKE ANY ('a', NULL) AS x, status LIKE ALL ('%') AS y "
    "FROM orders",
    "escape": "SELECT oid, concat(status, '_%') LIKE '_!_!%' ESCAPE '!' AS x FROM orders",
    "table_alone": "TABLE orders",
    "placed": "SELECT oid FROM orders WHERE cid > 0 DISTRIBUTE BY cid SORT BY oid",
    "apart": "SELECT oid FROM orders WHERE placed - DATE'2024-02-28' > INTERVAL 2 DAYS",
    "close": "SELECT a.eid, b.eid AS f FROM events a JOIN events b ON a.at - b.at <= INTERVAL 2 "
    "HOURS AND INTERVAL '0' DAY <= (a.at - b.at)",
    "distances": f"SELECT eid, {', '.join(_DISTANCES)} FROM events",
    "moves": f"SELECT eid, {', '.join(_MOVES)} FROM events",
    "parts": "SELECT eid, place.*, e.place.zip + 1 AS z FROM events e",
    "stars": "SELECT count(DISTINCT *) AS n, count(*) AS k, max(coalesce(*)) AS m "
    "FROM (SELECT oid, cid FROM orders)",
    "structs": "SELECT struct(*) AS s, struct(o.oid, cid + 1) AS t FROM orders o",
    "stacked": "SELECT eid, stack(3, 'eid', eid, 'cid', cid, 'none') AS (name, value) FROM events",
    "stacked_beside": "SELECT s.name, sum(s.value) AS v FROM events LATERAL VIEW "
    "stack(2, 'eid', eid, 'cid', cid) s AS name, value GROUP BY s.name",
    "tuples": "SELECT oid, (cid, oid) = (1, 2) AS a, (cid, oid) <> (oid, cid) AS b, (cid, oid) > "
    "(1, 2) AS c, (cid, status) IN ((1, 'a'), (oid, 'b'), (cid, 'c')) AS d FROM orders",
    "texts": "SELECT oid, concat(oid, '-', cid) AS a, cid || '/' || status AS b, concat_ws('-', "
    "oid, cid, placed, sum) AS c, upper(oid > 1) AS d, length(cid) AS e, substring(placed, 6, 2) "
    "AS f, lpad(cid, 3, 0) AS g, replace(cid, 1, 'x') AS h, cid LIKE '-_' AS i, "
    "split_part(sum, '.', 1) AS j, repeat(cid, 2) AS k, left(placed, 4) AS l FROM orders",
    "text_numbers": "SELECT oid FROM orders WHERE oid = '1' OR cid IN ('2', 3) OR '4' < oid",
    "bits": "SELECT oid, oid & 6 AS a, oid | cid AS b, cid ^ 3L AS c, ~cid AS d, ~(oid & cid) | 1 "
    "AS e FROM orders WHERE oid & 1 = 1 OR ~oid < -2",
    "limited": "SELECT oid FROM orders ORDER BY oid DESC LIMIT 1 + 1 OFFSET 2 - 1",
    "in_values": "SELECT o.oid, v.n FROM orders o CROSS JOIN LATERAL (VALUES (1), (2)) v(n)",
    "weeks": "SELECT oid, explode(sequence(placed, placed + INTERVAL 20 DAYS, INTERVAL 1 WEEK)) "
    "AS w FROM orders",
    "months": "WITH m AS (SELECT explode(sequence(DATE'2023-12-31', DATE'2024-04-30', "
    "INTERVAL 1 MONTH)) AS d) SELECT m.d, count(o.oid) AS n FROM m LEFT JOIN orders o "
    "ON o.placed >= m.d GROUP BY m.d",
    "hours": "SELECT eid, p, h FROM events LATERAL VIEW OUTER posexplode(sequence(at, at + "
    "INTERVAL 100 MINUTES, INTERVAL 40 MINUTES)) AS p, h",
    "joined_texts": "SELECT eid, concat_ws(',', tags) AS a, concat_ws('-', cid, tags, array('x'), "
    "NULL) AS b FROM events",
    "joined_rows": "SELECT cid, concat_ws(',', array_sort(collect_list(status))) AS a "
    "FROM orders GROUP BY cid",
    "collected": "SELECT cid, sort_array(collect_list(struct(placed, status, oid))) AS a, "
    "sort_array(collect_set(struct(status, placed))) AS b, "
    "sort_array(collect_list(struct(status, oid)), false)[0].oid AS c FROM orders GROUP BY cid",
    "collected_parts": "SELECT cid, sort_array(collect_list(struct(place, tags))) AS a, "
    "sort_array(collect_set(place)) AS b, sort_array(collect_list(tags)) AS c "
    "FROM events GROUP BY cid",
    "collected_over": "SELECT eid, sort_array(collect_list(place) OVER (PARTITION BY cid ORDER BY "
    "eid)) AS l FROM events",
    # FALSE where a comparison with NULL decides, as Spark's joins for existence have it.
    "null_in": "SELECT oid, cid IN (SELECT cid FROM events) AS a, "
    "cid NOT IN (SELECT cid FROM events) AS b FROM orders",
}


def test_idioms_are_kept_as_spark_reads_them(tmp_path: Path, spark: SparkSession) -> None:
    rng = Random(7)
    database = random_database(TABLES, rng, rows=12)
    keeper = Keeper(tmp_path / "lake")
    for name, table in TABLES.items():
        keeper.create_table(name, table, rows=list(database[name].values()))
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql, policy="incremental")
    assert [each.name for each in keeper.status() if each.strategy == "recompute"] == []
    for _ in range(3):
        batches = random_batch(database, TABLES, rng, 8)
        changes = {name: batch_changes(batch) for name, batch in batches.items()}
        keeper.transaction({n: {k: getattr(c, k) for k in _KINDS} for n, c in changes.items() if c})
        database = apply_batches(database, batches)
        keeper.refresh()
    for name, table in TABLES.items():
        frame = spark.createDataFrame(as_arrow(table, database[name].values()))
        frame.createOrReplaceTempView(name)
    answers = collect({name: spark.sql(sql) for name, sql in VIEWS.items()}, 100_000)
    wrong = []
    for name in VIEWS:
        try:
            expect(name, plain(rows(keeper, name)), plain(Counter(to_rows(answers[name]))))
        except AssertionError as error:
            wrong.append(str(error))
    assert wrong == []


_KINDS = ("inserts", "updates", "deletes")
