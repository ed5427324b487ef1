"""Lakes in an object store, over HTTP: all that a lake on a disk does, with the same results."""

import logging
import os
import traceback
from collections import Counter
from random import Random

import pytest

from tests.diffs.random_tables import apply_batches, random_batch, random_database
from tests.keeper.faults import TABLES, apply
from tests.objects.emulator import KEY_ID, SECRET, Emulator
from tests.objects.lakes import check_views, create, read_model, stored_rows
from viewkeep import Keeper, ViewkeepError
from viewkeep.lake import lease as leases

ROUNDS = 12 if os.environ.get("VIEWKEEP_LONG") else 3


@pytest.fixture
def uri(bucket: str) -> str:
    return f"s3://{bucket}/some/lake"


def test_tables_and_views(emulator: Emulator, bucket: str, uri: str) -> None:
    """Random changes, refreshed and compared; then all else that a keeper does."""
    rng, options = Random(3), emulator.options
    model = random_database(TABLES, rng, 12)
    keeper = Keeper(uri, storage_options=options)
    create(keeper, model)
    for _ in range(ROUNDS):
        for batch in random_batch(model, TABLES, rng, 6).values():
            apply(keeper, batch)
            model = apply_batches(model, {batch.name: batch})
        keeper.refresh()
        assert read_model(uri, options) == model
        check_views(keeper, uri, options)
    assert all(keeper.verify(name).ok for name in keeper.views)
    assert all(each.is_fresh for each in keeper.status())
    assert len(keeper.history("cost")) >= 2
    assert keeper.changes("parts").num_rows > 0
    assert keeper.query("SELECT count(*) AS n FROM parts").to_pylist() == [
        {"n": len(model["parts"])}
    ]
    other = Keeper(uri, storage_options=options, create=False)
    assert other.views == keeper.views
    for name in emulator.objects(bucket):
        text = emulator.read(bucket, name)
        assert KEY_ID.encode() not in text, name
        assert SECRET.encode() not in text, name


def test_transactions_and_definitions(emulator: Emulator, bucket: str, uri: str) -> None:
    """Several tables at once; views that are replaced and dropped leave nothing behind."""
    keeper = Keeper(uri, storage_options=emulator.options)
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=[(1, 10)])
    keeper.create_table("uses", {"did": "int", "pid": "int"}, ["did"], rows=[(7, 1)])
    keeper.create_view("cost", "SELECT did, price FROM uses JOIN parts USING (pid)")
    keeper.transaction({"parts": {"inserts": [(2, 20)]}, "uses": {"inserts": [(8, 2)]}})
    keeper.refresh()
    assert _rows(keeper, "cost") == Counter({(7, 10): 1, (8, 20): 1})
    keeper.create_view("cost", "SELECT pid, count(*) AS n FROM uses GROUP BY pid", replace=True)
    assert _rows(keeper, "cost") == Counter({(1, 1): 1, (2, 1): 1})
    keeper.drop_view("cost")
    assert emulator.objects(bucket, "some/lake/cost/") == []
    assert emulator.objects(bucket, "some/lake/_viewkeep/caches/cost/") == []
    keeper.create_view("cost", "SELECT max(price) AS most FROM parts")
    assert _rows(keeper, "cost") == Counter({(20,): 1})
    keeper.drop_table("uses")
    with pytest.raises(ViewkeepError, match="there is a Delta table"):
        keeper.create_table("uses", {"did": "int"}, ["did"])
    keeper.register_table("uses", f"{uri}/uses", ["did"])
    assert keeper.version("uses") == 1


def test_vacuum(emulator: Emulator, bucket: str, uri: str) -> None:
    """Files that no version needs go, others stay: also those of work that runs."""
    keeper = Keeper(uri, storage_options=emulator.options)
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=[(1, 0)])
    keeper.create_view("dear", "SELECT pid, price FROM parts WHERE price > 2")
    with keeper._lake.marked():  # as a refresh does that reads the first versions
        assert emulator.objects(bucket, "some/lake/_viewkeep/running/")
        for price in range(1, 5):
            keeper.apply("parts", updates=[{"pid": 1, "price": price}])
            keeper.refresh()
        before = _data_files(emulator, bucket)
        assert len(before) > 4
        assert sum(keeper.vacuum(hours=0, force=True).values()) == 0
    assert not emulator.objects(bucket, "some/lake/_viewkeep/running/")
    assert sum(keeper.vacuum(hours=24).values()) == 0
    assert _data_files(emulator, bucket) == before
    removed = keeper.vacuum(hours=0, force=True)
    assert removed["parts"] > 0
    assert len(_data_files(emulator, bucket)) == len(before) - sum(removed.values())
    assert _rows(keeper, "parts") == _rows(keeper, "dear") == Counter({(1, 4): 1})
    keeper.apply("parts", inserts=[(2, 5)])
    keeper.refresh()
    assert keeper.verify("dear").ok


def test_credentials_are_in_no_message(
    emulator: Emulator, uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The store refuses, and repeats the ID of the key and what was signed."""
    keeper = Keeper(uri, storage_options=emulator.options)
    keeper.create_table("parts", {"pid": "int"}, ["pid"], rows=[(1,)])
    keeper.create_view("some", "SELECT pid FROM parts")
    caplog.set_level(logging.DEBUG)
    works = (
        lambda: keeper.read("parts"),
        lambda: keeper.apply("parts", inserts=[(2,)]),
        keeper.refresh,
        lambda: keeper.vacuum(hours=24),
        lambda: Keeper(f"{uri}/other", storage_options=emulator.options),
        lambda: keeper.create_table("more", {"pid": "int"}, ["pid"], rows=[(1,)]),
    )
    with emulator.failing(denied=True):
        for work in works:
            with pytest.raises(ViewkeepError) as refused:
                work()
            shown = "".join(traceback.format_exception(refused.value))
            assert "SignatureDoesNotMatch" in shown
            _check_hidden(shown)
    _check_hidden(caplog.text)
    _check_hidden(f"{keeper!r} {keeper._lake!r}")
    assert keeper.read("parts").num_rows == 1


def test_credentials_of_the_environment(
    emulator: Emulator, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lake needs no storage options; nor do its messages show the environment."""
    for name, value in emulator.options.items():
        monkeypatch.setenv(name, value)
    keeper = Keeper(uri)
    keeper.create_table("parts", {"pid": "int"}, ["pid"], rows=[(1,)])
    with emulator.failing(denied=True), pytest.raises(ViewkeepError) as refused:
        keeper.read("parts")
    _check_hidden("".join(traceback.format_exception(refused.value)))


@pytest.mark.parametrize(
    "uri", ["s3://key:secret-word@bucket/lake", "https://account.example/lake?sig=secret-word"]
)
def test_uris_have_no_credentials(uri: str) -> None:
    with pytest.raises(ViewkeepError, match="storage_options") as refused:
        Keeper(uri)
    assert "secret-word" not in str(refused.value)


def test_an_answer_that_is_lost(emulator: Emulator, uri: str) -> None:
    """A commit is written, and the store answers that it failed: the request is sent again, and
    must not be taken for one that lost a race."""
    options = emulator.options
    keeper = Keeper(uri, storage_options=options)
    with emulator.failing(lost_answers=1):
        keeper.create_table("parts", {"pid": "int", "n": "int"}, ["pid"], rows=[(1, 1)])
    keeper.create_view("total", "SELECT sum(n) AS n FROM parts")
    with emulator.failing(lost_answers=1):
        assert keeper.apply("parts", inserts=[(2, 2)], updates=[{"pid": 1, "n": 5}]) == 1
    with emulator.failing(lost_answers=1):
        keeper.refresh()
    assert keeper.version("parts") == 1
    assert keeper.version("total") == 1
    assert stored_rows(f"{uri}/total", options) == Counter({(7,): 1})
    assert keeper.verify("total").ok


def test_leases(emulator: Emulator, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two has it; the other gets it when it is given back, or its holder is silent."""
    lake = Keeper(uri, storage_options=emulator.options)._lake
    monkeypatch.setattr(leases, "TERM", 0.0)
    monkeypatch.setattr(leases, "RENEWALS", 1)
    first, second = lake.lease("watch"), lake.lease("watch")
    with monkeypatch.context() as patch:
        patch.setattr(leases, "TERM", 60.0)
        assert first.is_held()
        assert not second.is_held()
        assert first.is_held()
    first.release()
    second = lake.lease("watch")
    with monkeypatch.context() as patch:
        patch.setattr(leases, "TERM", 60.0)
        assert second.is_held()
    third = lake.lease("watch")
    assert third.is_held(), "a holder that is silent for a term has lost it"


def _rows(keeper: Keeper, name: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in keeper.read(name).to_pylist())


def _data_files(emulator: Emulator, bucket: str) -> list[str]:
    names = emulator.objects(bucket)
    return [each for each in names if each.endswith(".parquet") and "_delta_log" not in each]


def _check_hidden(text: str) -> None:
    assert KEY_ID not in text
    assert SECRET not in text
