"""Projects from files to fresh views: what is planned, what is run, what is refused."""

from pathlib import Path

import pytest

import viewkeep as vk
from tests.cli.lakes import done, viewkeep, write
from viewkeep.keeper import Keeper
from viewkeep.project.model import ProjectError
from viewkeep.project.new import new_project
from viewkeep.project.plan import plan_project
from viewkeep.project.read import read_project
from viewkeep.project.run import run_plan

pytest.importorskip("yaml", reason="pyyaml is not installed: make setup")

SALES = "views/sales.sql"
TABLES = """
CREATE TABLE parts (pid INT PRIMARY KEY, name STRING, price INT NOT NULL);
CREATE TABLE uses (did INT, pid INT REFERENCES parts, PRIMARY KEY (did, pid));
"""
COST = """
CREATE MATERIALIZED VIEW cost COMMENT 'what a device costs' AS
SELECT u.did, sum(p.price) AS cost FROM parts p JOIN uses u ON u.pid = p.pid GROUP BY u.did;
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "120")
    new_project(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def project(tmp_path: Path, files: dict[str, str]) -> Path:
    """A project of these files."""
    folder = tmp_path / "project"
    for name, text in {"viewkeep.toml": 'name = "p"\n', **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write(folder / name, text)
    return folder


def actions(folder: Path) -> dict[str, str]:
    """What the plan of a project does to each table and view, beside its own lake."""
    read = read_project(folder)
    plan = plan_project(read, Keeper(read.lake))
    return {each.name: each.action for each in plan.steps}


def run(folder: Path) -> None:
    read = read_project(folder)
    keeper = Keeper(read.lake)
    assert not run_plan(plan_project(read, keeper), keeper).failed


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    write(path, text.replace(old, new))


# --- the whole way --------------------------------------------------------------------------------


def test_a_new_project_works_as_it_is(shop: Path) -> None:
    assert not (shop / "lake").exists()
    assert done("plan").out.splitlines()[-1] == "6 to create; `viewkeep up` does it"
    assert not (shop / "lake").exists(), "a plan makes nothing"
    assert viewkeep("plan", "--check").code == 1
    assert done("up").out.splitlines()[-1] == "all views are fresh"
    assert done("plan", "--check").out.splitlines()[-1] == "nothing to do"
    assert done("test").out.splitlines()[-1] == "2 tests passed"
    assert done("read", "best_sellers", "--json").json["rows"] == [
        {"name": "cup", "revenue": "25.50"}
    ]
    assert done("up", "--json").json["steps"] == []


def test_the_lake_of_a_project_can_be_elsewhere(shop: Path, tmp_path: Path) -> None:
    done("up", "--lake", tmp_path / "other", "--project", shop)
    assert not (shop / "lake").exists()
    assert done("read", "daily_sales", "--lake", tmp_path / "other", "--json").json["rows"]


def test_a_folder_that_is_not_empty_is_left(shop: Path) -> None:
    answer = viewkeep("new", shop)
    assert (answer.code, "is not empty" in answer.err) == (2, True)


# --- what has changed -----------------------------------------------------------------------------


OTHER_NAMES = """
CREATE MATERIALIZED VIEW product_sales AS
  select x.product, x.name, sum(y.amount * x.price) as revenue, count(*) as orders
  from products as x inner join lines y on y.product = x.product
  group by x.product, x.name; --"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("CREATE MATERIALIZED VIEW product_sales", OTHER_NAMES),
        ("SELECT p.product, p.name, sum", "SELECT p.product, /* as sold */ p.name, sum"),
        ("JOIN lines l ON l.product = p.product\nG", ", lines l WHERE l.product = p.product\nG"),
        ("count(*) AS orders", "count(l.amount) AS orders"),  # it is never NULL
    ],
)
def test_another_text_of_the_same_query_is_no_reason_to_build(
    shop: Path, old: str, new: str
) -> None:
    run(shop)
    if new is OTHER_NAMES:
        text = (shop / SALES).read_text()
        write(shop / SALES, f"{OTHER_NAMES}\n{text[text.index('-- viewkeep') :]}")
    else:
        edit(shop / SALES, old, new)
    before = Keeper(shop / "lake").version("product_sales")
    assert actions(shop).pop("product_sales") == "set text"
    assert set(actions(shop).values()) == {"leave", "set text"}
    run(shop)
    assert set(actions(shop).values()) == {"leave"}
    keeper = Keeper(shop / "lake")
    assert keeper.version("product_sales") == before
    assert keeper.views["product_sales"] in (shop / SALES).read_text(), "the newest text"
    keeper.apply("lines", inserts=[(2, 1, 4)])
    [report] = [each for each in keeper.refresh() if each.view == "product_sales"]
    assert report.strategy == "id", "its rows were not computed anew"
    assert keeper.verify("product_sales").ok


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("count(*) AS orders", "count(*) AS times"),
        ("l.amount * p.price) AS revenue, count", "l.amount + p.price) AS revenue, count"),
        ("ON l.product = p.product\nGROUP", "ON l.product = p.product WHERE p.price > 3\nGROUP"),
        ("sum(l.amount * p.price) AS revenue, count", "max(l.amount * p.price) AS revenue, count"),
        ("products p JOIN lines l", "products p LEFT JOIN lines l"),
        ("count(*) AS orders", "count(DISTINCT l.amount) AS orders"),
        ("-- What each", "-- viewkeep: strategy = tuple\n-- What each"),
        ("COMMENT 'Revenue by product'", "TBLPROPERTIES ('viewkeep.policy' = 'full')"),
    ],
)
def test_another_query_or_option_replaces_the_view_and_no_other(
    shop: Path, old: str, new: str
) -> None:
    run(shop)
    edit(shop / SALES, old, new)
    assert actions(shop)["product_sales"] == "replace"
    assert actions(shop)["daily_sales"] == "leave"
    run(shop)
    assert set(actions(shop).values()) == {"leave"}
    assert Keeper(shop / "lake").verify("product_sales").ok


def test_a_lag_changes_without_a_build(shop: Path) -> None:
    run(shop)
    before = Keeper(shop / "lake").version("daily_sales")
    edit(shop / SALES, "lag = 1m", "lag = 5m")
    assert actions(shop)["daily_sales"] == "set lag"
    run(shop)
    [view] = Keeper(shop / "lake").describe_views("daily_sales")
    assert (view.lag, Keeper(shop / "lake").version("daily_sales")) == ("5m", before)


def test_columns_that_go_are_asked_for_and_views_above_follow(shop: Path) -> None:
    run(shop)
    edit(shop / SALES, "AS revenue, count(*) AS orders", "AS income, count(*) AS orders")
    refused = viewkeep("up")
    assert refused.code == 2
    assert 'column "revenue" is not in product_sales' in refused.err, "a view above would break"
    write(
        shop / "views" / "best.sql",
        "CREATE MATERIALIZED VIEW best_sellers AS\n"
        "SELECT name, income FROM product_sales WHERE income >= 20",
    )
    refused = viewkeep("up")
    assert (refused.code, "product_sales: its column revenue" in refused.err) == (2, True)
    assert "revenue" in Keeper(shop / "lake").read("product_sales").column_names
    done("up", "--yes")
    assert Keeper(shop / "lake").read("best_sellers").column_names == ["name", "income"]
    assert Keeper(shop / "lake").verify("best_sellers").ok


def test_a_column_of_a_wider_type_is_told_and_not_asked_for(shop: Path) -> None:
    run(shop)
    edit(shop / SALES, "count(*) AS orders", "CAST(count(*) AS DECIMAL(20, 0)) AS orders")
    edit(shop / SALES, "lag = 1m", "policy = full")
    read = read_project(shop)
    steps = {e.name: e for e in plan_project(read, Keeper(read.lake)).steps}
    reasons = {n: steps[n].reason for n in ("product_sales", "daily_sales")}
    assert reasons == {
        "product_sales": "its query has changed; orders becomes decimal(20, 0)",
        "daily_sales": "its options have changed",
    }
    assert not any(each.destroys for each in steps.values())
    edit(shop / SALES, "DECIMAL(20, 0)", "STRING")
    steps = {e.name: e for e in plan_project(read_project(shop), Keeper(read.lake)).steps}
    assert steps["product_sales"].destroys == "its column orders"


def test_a_view_that_is_no_longer_there_is_dropped_and_others_views_stay(shop: Path) -> None:
    run(shop)
    Keeper(shop / "lake").create_view("by_hand", "SELECT product FROM products")
    (shop / "views" / "best.sql").unlink()
    assert actions(shop)["best_sellers"] == "drop"
    refused = viewkeep("up")
    assert (refused.code, "best_sellers" in Keeper(shop / "lake").views) == (2, True)
    done("up", "--yes")
    assert set(Keeper(shop / "lake").views) == {"product_sales", "daily_sales", "by_hand"}


def test_a_run_that_was_cut_short_is_finished_by_the_next(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        done_steps = [0]
        for name in ("create_table", "create_view"):
            whole = getattr(Keeper, name)

            def cut(
                *arguments: object,
                _whole: object = whole,
                _done: list[int] = done_steps,
                **o: object,
            ) -> object:
                _done[0] += 1
                if _done[0] > 1:
                    raise KeyboardInterrupt
                return _whole(*arguments, **o)  # type: ignore[operator]

            monkeypatch.setattr(Keeper, name, cut)
        with pytest.raises(KeyboardInterrupt):
            run(shop)
        monkeypatch.undo()
    keeper = Keeper(shop / "lake")
    assert (len(keeper.tables), len(keeper.views)) == (3, 2), "each run went one step further"
    run(shop)
    assert all(Keeper(shop / "lake").verify(name).ok for name in Keeper(shop / "lake").views)
    assert set(actions(shop).values()) == {"leave"}


def test_columns_that_a_project_adds_and_widens(tmp_path: Path) -> None:
    star = "CREATE MATERIALIZED VIEW star AS SELECT * FROM parts;"
    folder = project(tmp_path, {"tables.sql": TABLES, "cost.sql": COST, "star.sql": star})
    run(folder)
    Keeper(folder / "lake").apply("parts", inserts=[(1, "a", 5)])
    edit(folder / "tables.sql", "name STRING, price INT", "name STRING, size INT, price BIGINT")
    named = "CREATE MATERIALIZED VIEW sizes AS SELECT size, count(*) AS n FROM parts GROUP BY size;"
    write(folder / "sizes.sql", named)
    read = read_project(folder)
    steps = {e.name: e for e in plan_project(read, Keeper(read.lake)).steps}
    assert (steps["parts"].action, steps["parts"].reason) == (
        "alter",
        "add size int; price becomes bigint",
    )
    assert {n: steps[n].action for n in ("uses", "star", "sizes")} == {
        "uses": "leave",
        "star": "replace",
        "sizes": "create",
    }
    run(folder)
    keeper = Keeper(folder / "lake")
    assert keeper.table("parts").names == ("pid", "name", "price", "size")
    assert keeper.read("star").to_pylist() == [{"pid": 1, "name": "a", "price": 5, "size": None}]
    assert all(keeper.verify(name).ok for name in keeper.views)
    assert set(actions(folder).values()) == {"leave"}


def test_columns_that_a_project_drops_are_not_dropped(tmp_path: Path) -> None:
    folder = project(tmp_path, {"tables.sql": TABLES})
    run(folder)
    edit(folder / "tables.sql", "name STRING, ", "")
    read = read_project(folder)
    [problem] = plan_project(read, Keeper(read.lake)).problems
    assert "viewkeep table alter parts" in problem.reason


def test_tables_are_never_changed(shop: Path) -> None:
    run(shop)
    edit(shop / "tables" / "shop.sql", "name STRING NOT NULL", "name STRING")
    answer = viewkeep("plan")
    assert answer.code == 1
    assert "! table products (tables/shop.sql): the lake has" in answer.out
    assert viewkeep("up").code == 2


def test_a_plan_tells_how_stale_views_are_refreshed(shop: Path) -> None:
    run(shop)
    Keeper(shop / "lake").apply("products", updates=[{"product": 1, "price": 3}])
    steps = {each["name"]: each for each in done("plan", "--json").json["steps"]}
    assert "1 of products" in steps["product_sales"]["refresh"]
    done("up")
    assert all(each.is_fresh for each in Keeper(shop / "lake").status())


# --- what is read ---------------------------------------------------------------------------------


def test_a_pipeline_of_spark_is_read_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "pipeline"
    (folder / "transformations" / "deep").mkdir(parents=True)
    write(
        folder / "spark-pipeline.yml",
        "name: devices\ncatalog: main\ndatabase: shop\nstorage: file:///tmp/storage\n"
        "libraries:\n  - glob:\n      include: transformations/**\n"
        "configuration:\n  spark.sql.shuffle.partitions: '4'\n",
    )
    write(
        folder / "transformations" / "cost.sql",
        "CREATE MATERIALIZED VIEW main.shop.cost COMMENT 'c' AS\n"
        "SELECT u.did, sum(p.price) AS cost, 'shop.x' AS note\n"
        "FROM shop.parts p JOIN main.shop.uses u ON u.pid = p.pid GROUP BY u.did",
    )
    write(
        folder / "transformations" / "deep" / "dear.sql",
        "SET spark.sql.shuffle.partitions = 2;\n"
        "CREATE OR REFRESH MATERIALIZED VIEW dear (did INT COMMENT 'a, b', c DECIMAL(10, 2))\n"
        "PARTITIONED BY (did) AS SELECT did, CAST(1 AS DECIMAL(10, 2)) AS c FROM LIVE.cost\n"
        "WHERE cost > 3",
    )
    write(folder / "transformations" / "more.py", "import this")
    keeper = vk.Keeper(folder / "lake")
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=[(1, 5), (2, 2)])
    keeper.create_table("uses", {"did": "int", "pid": "int"}, ["did", "pid"], rows=[(7, 1), (8, 2)])
    read = read_project(folder)
    assert [each.name for each in read.views] == ["cost", "dear"]
    assert read.notes == (
        "transformations/more.py is not SQL, and left out",
        "transformations/deep/dear.sql: SET is left out",
    )
    run(folder)
    assert [row["did"] for row in keeper.read("dear").to_pylist()] == [7]
    keeper.apply("parts", updates=[{"pid": 2, "price": 9}])
    reports = {each.view: each.strategy for each in keeper.refresh()}
    assert reports == {"cost": "id", "dear": "id"}
    assert (
        keeper.query("SELECT note, cost FROM cost ORDER BY did").to_pylist()[0]["note"] == "shop.x"
    )


def test_a_table_that_others_write_is_registered(tmp_path: Path) -> None:
    other = vk.Keeper(tmp_path / "warehouse")
    other.create_table("visits", {"id": "int", "page": "string"}, ["id"], rows=[(1, "a"), (2, "a")])
    settings = (
        f'name = "p"\n[tables.visits]\nlocation = "{tmp_path}/warehouse/visits"\nkey = ["id"]\n'
    )
    view = "CREATE MATERIALIZED VIEW pages AS SELECT page, count(*) AS n FROM visits GROUP BY page"
    folder = project(tmp_path, {"viewkeep.toml": settings, "pages.sql": view})
    assert actions(folder) == {"visits": "register", "pages": "create"}
    run(folder)
    other.apply("visits", inserts=[(3, "b")])
    run(folder)
    rows = Keeper(folder / "lake").query("SELECT * FROM pages ORDER BY page").to_pylist()
    assert rows == [{"page": "a", "n": 2}, {"page": "b", "n": 1}]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"viewkeep.toml": "name = 3"}, "name is a text"),
        ({"viewkeep.toml": "lakes = 'x'"}, '"lakes" means nothing here'),
        ({"viewkeep.toml": "name = "}, "viewkeep.toml: "),
        ({"viewkeep.toml": 'sql = ["../*.sql"]'}, "leads out of the project"),
        ({"viewkeep.toml": "[tables.t]\nkey = ['a']"}, "location is missing"),
        ({"viewkeep.toml": "[defaults]\nspeed = 'high'"}, '"speed" means nothing here'),
        ({"a.sql": "CREATE TABLE t (a INT PRIMARY KEY"}, "a.sql"),
        ({"a.sql": "CREATE TABLE t (a INT PRIMARY KEY, b INT REFERENCES u)"}, 'unknown table "u"'),
        ({"a.sql": "SELECT 1"}, "belong to tests/"),
        ({"a.sql": "DROP TABLE t"}, "a.sql"),
        ({"a.sql": "CREATE STREAMING TABLE t AS SELECT * FROM STREAM s"}, "keeper.sink()"),
        ({"a.sql": "CREATE VIEW v AS SELECT 1 AS a", "b.sql": "CREATE VIEW V AS SELECT 2 AS b"},
         "is defined twice, in a.sql and b.sql"),
        ({"a.sql": "CREATE VIEW v AS SELECT * FROM w; CREATE VIEW w AS SELECT * FROM v"},
         "views read each other"),
        ({"a.sql": "CREATE VIEW v TBLPROPERTIES ('viewkeep.speed' = 'x') AS SELECT 1 AS a"},
         '"speed" means nothing here'),
        ({"tests/a.yml": "- view: 3"}, "view names the view"),
        ({"tests/a.yml": "- view: v"}, "expect tells the rows"),
        ({"tests/a.yml": "{"}, "tests/a.yml"),
        ({"tests/a.yml": "- {view: v, expect: 3}"}, "expected a list of rows"),
        ({"spark-pipeline.yml": "libraries: [{glob: {include: ../x}}]"}, "leads out"),
        ({"spark-pipeline.yml": "!!python/object/apply:os.system ['true']"}, "spark-pipeline.yml"),
    ],
)  # fmt: skip
def test_files_that_are_not_right_are_refused_by_name(
    tmp_path: Path, files: dict[str, str], problem: str
) -> None:
    with pytest.raises(ProjectError) as refused:
        read_project(project(tmp_path, files))
    assert problem in str(refused.value)


def test_the_example_of_spark_itself_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyspark.pipelines.init_cli import init

    monkeypatch.chdir(tmp_path)
    init("example")
    capsys.readouterr()
    answer = viewkeep("plan", "--project", "example")
    assert answer.code == 1
    assert "example_python_materialized_view.py is not SQL, and left out" in " ".join(
        answer.out.split()
    )
    keeper = vk.Keeper(tmp_path / "example" / "lake")
    keeper.create_table("example_python_materialized_view", {"id": "bigint"}, ["id"],
                        rows=[(i,) for i in range(10)])  # fmt: skip
    run(tmp_path / "example")
    assert keeper.read("example_sql_materialized_view").num_rows == 5


def test_names_of_tables_lead_to_no_other_file(tmp_path: Path) -> None:
    write(tmp_path / "secret.csv", "a\n1\n")
    table = "CREATE TABLE `../../secret` (a INT PRIMARY KEY)"
    read = read_project(project(tmp_path, {"t.sql": table, "data/t.csv": "a\n1\n"}))
    assert [each.rows for each in read.tables] == [None]


def test_a_list_of_columns_is_that_of_the_query(tmp_path: Path) -> None:
    listed = COST.replace("VIEW cost", "VIEW cost (did, price)")
    folder = project(tmp_path, {"t.sql": TABLES, "v.sql": listed})
    assert actions(folder)["cost"] == "fails"
    write(folder / "v.sql", COST.replace("VIEW cost", "VIEW cost (did INT, COST BIGINT)"))
    assert actions(folder)["cost"] == "create"
    keeper = Keeper(folder / "lake")
    keeper.create_table("t", {"a": "int"}, ["a"])
    with pytest.raises(vk.ViewkeepError, match="lists the columns b, and its query gives a"):
        keeper.create_view("v", "CREATE VIEW v (b) AS SELECT a FROM t")
    keeper.create_view("v", "CREATE VIEW v (a COMMENT 'x') COMMENT 'y' AS SELECT a FROM t")


def test_a_view_that_cannot_be_read_is_told_and_nothing_is_run(tmp_path: Path) -> None:
    folder = project(tmp_path, {"t.sql": TABLES, "v.sql": COST.replace("p.price", "p.prize")})
    answer = viewkeep("up", "--project", folder)
    assert answer.code == 2
    assert 'column "prize" is not in p' in answer.err
    assert "at line 3, column 19" in answer.err, "its place in the file"
    assert not (folder / "lake").exists()


def test_a_table_that_nobody_has_is_told_once_with_a_way_out(tmp_path: Path) -> None:
    above = "CREATE MATERIALIZED VIEW dear AS SELECT did FROM cost;"
    folder = project(tmp_path, {"v.sql": COST, "above.sql": above})
    answer = viewkeep("plan", "--project", folder)
    lines = answer.out.split("\n")
    assert "it reads cost, which cannot be made" in answer.out
    assert "in viewkeep.toml" in answer.out.replace("\n", " ")
    caret = next(number for number, line in enumerate(lines) if line.strip() == "^")
    place = lines[caret].index("^")
    assert lines[caret - 1][place:].startswith(("parts", "uses"))


# --- tests of projects ----------------------------------------------------------------------------


def test_tests_that_fail_list_the_rows(shop: Path) -> None:
    done("up")
    write(shop / "tests" / "cheap.sql", "SELECT name FROM product_sales WHERE revenue < 15")
    edit(shop / "tests" / "sales.yml", "revenue: 9, orders: 2", "revenue: 8, orders: 2")
    answer = viewkeep("test")
    assert answer.code == 1
    assert "FAILS cheap" in answer.out
    assert "tea" in answer.out
    assert "product_sales after change 1: 1 rows are missing, 1 are too many" in answer.out
    assert "2 of 3 tests failed" in answer.out
    document = viewkeep("test", "cheap", "--json").json
    assert document["tests"][0]["extra"] == [{"name": "tea"}]
    assert viewkeep("test", "cheep").code == 2


@pytest.mark.parametrize(
    ("expect", "passed"),
    [
        ("[{did: 1, cost: 10}]", True),
        ("[{cost: 10.0}]", True),
        ("[{did: 1, cost: 11}]", False),
        ("[]", False),
        ("[{did: 1, cost: 10}, {did: 1, cost: 10}]", False),
        ("[{did: null, cost: 10}]", False),
        ("[{did: true, cost: 10}]", False),
        ("[{nope: 1}]", False),
    ],
)
def test_unit_tests_compare_rows(tmp_path: Path, expect: str, passed: bool) -> None:
    test = (
        "- view: cost\n  given:\n    parts: [{pid: 1, price: 10}]\n    uses: [{did: 1, pid: 1}]\n"
        f"  expect: {expect}\n"
    )
    folder = project(tmp_path, {"t.sql": TABLES, "v.sql": COST, "tests/t.yml": test})
    assert (viewkeep("test", "--project", folder).code == 0) == passed
