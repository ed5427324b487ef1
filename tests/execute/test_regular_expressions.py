"""Patterns that all engines read alike: random ones, on texts with all sorts of line breaks."""

import os
from collections.abc import Iterator
from random import Random

from pyspark.sql import SparkSession

from tests.execute.both_engines import DuckdbEngine, SparkEngine
from viewkeep.query.evaluate.text_functions import TEXT_FUNCTIONS
from viewkeep.query.expressions import Call, Column, literal
from viewkeep.query.regular_expressions import common_pattern, common_replacement
from viewkeep.query.types.data_types import STRING, Field

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
PATTERNS = 1500 if LONG else 250
ATOMS = (
    *("a", "b", "A", "-", "é", "1", ".", r"\d", r"\w", r"\W", r"\s", r"\S", r"\.", r"\n", r"\r"),
    *("[ab]", "[^a]", "[a-c1]", r"[\s,]", r"[^\d]", "[-_]", "ß", "😀", r"\-", "[.]", "_", " ", ","),
)
OTHERS = (r"\b", "(?i)a", r"(a)\1", "a++", "(?=a)", "[a&&b]", r"\p{L}", "[[a]b]", "a$|b", "(a*)*")
TEXTS = "abAc1 _-.,éß😀\n\r\t\x0b\x85\u2028K"


def patterns(rng: Random) -> Iterator[str]:
    while True:
        text = "^" if rng.random() < 0.3 else ""
        text += _sequence(rng, 2)
        yield text + ("$" if rng.random() < 0.3 else "")


def _sequence(rng: Random, depth: int) -> str:
    parts = []
    for _ in range(rng.randint(1, 3)):
        part = rng.choice(ATOMS)
        if depth and rng.random() < 0.3:
            choice = "|".join(_sequence(rng, depth - 1) for _ in range(rng.randint(1, 2)))
            part = f"{rng.choice(['(', '(?:'])}{choice})"
        parts.append(part + rng.choice(["", "", "", "*", "+", "?", "{2}", "{1,2}", "+?"]))
    return "".join(parts)


def test_the_common_part_is_the_same_everywhere(spark: SparkSession) -> None:
    rng = Random(11)
    texts = ["".join(rng.choices(TEXTS, k=rng.randint(0, 6))) for _ in range(300)]
    texts += ["", "\r\n", "a\r\n", "b\n\n", "a\u2028", None]
    drawn = patterns(rng)
    chosen = [java for java in (next(drawn) for _ in range(PATTERNS)) if common_pattern(java)]
    assert len(chosen) > PATTERNS / 2
    calls: list[Call] = []
    for java in chosen:
        pattern = common_pattern(java)
        assert pattern is not None
        calls.append(Call("rlike", (Column("s"), literal(java))))
        if pattern.at_end or pattern.repeats_groups:
            continue
        group = rng.randint(0, pattern.groups)
        calls.append(Call("regexp_extract", (Column("s"), literal(java), literal(group))))
        new = rng.choice(["", "x", f"<${group}>", "$0$0"])
        if not pattern.matches_nothing and common_replacement(new, pattern.groups) is not None:
            calls.append(Call("regexp_replace", (Column("s"), literal(java), literal(new))))
    schema, rows = (Field("s", STRING),), [(text,) for text in texts]
    in_duckdb = DuckdbEngine(schema, rows)
    answers = zip(
        calls,
        SparkEngine(spark, schema, rows).answers(calls),
        in_duckdb.answers(calls),
        strict=True,
    )
    for call, one, other in answers:
        pairs = zip(texts, one.values, other.values, strict=True)
        found = [each for each in pairs if each[1] != each[2]]
        assert not found, f"{call}: {found[0]}"
        constants = [each.value for each in call.arguments[1:]]  # type: ignore[union-attr]
        function = TEXT_FUNCTIONS[call.function]
        computed = [None if text is None else function(text, *constants) for text in texts]
        as_bytes = [each.encode() if isinstance(each, str) else each for each in computed]
        assert as_bytes == list(one.values), call
    in_duckdb.close()


def test_the_rest_is_left_to_spark() -> None:
    for java in OTHERS:
        assert common_pattern(java) is None, java
