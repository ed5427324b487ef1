"""The page in a real browser: every panel, on a screen and on a phone, in light and dark."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import viewkeep as vk
from tests.page.lakes import COLUMN, HOSTILE, hostile_lake
from tests.page.test_server import served

pytest.importorskip("selenium", reason="selenium is not installed: make setup")
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="Chromium or its driver is missing: apt-get install chromium chromium-driver",
)
VIEWS = 50 if os.environ.get("VIEWKEEP_LONG") else 6
REFRESHES = 20 if os.environ.get("VIEWKEEP_LONG") else 3


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = Options()
    options.binary_location = str(CHROMIUM)
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(each)
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> vk.Keeper:
    return hostile_lake(tmp_path_factory.mktemp("lake") / "shop")


@pytest.fixture(scope="module")
def address(keeper: vk.Keeper) -> Iterator[str]:
    with served(keeper) as port:
        yield f"http://127.0.0.1:{port}/"


def shown(browser: Any, address: str, text: str) -> str:
    """The text of a page, once it shows what it is to show."""
    browser.get("about:blank")
    browser.get(address)
    return waited(browser, text)


def waited(browser: Any, text: str) -> str:
    body = lambda driver: str(driver.execute_script("return document.body.innerText"))  # noqa: E731
    WebDriverWait(browser, 60).until(lambda driver: text in body(driver))
    check_harmless(browser)
    return body(browser)


def check_harmless(browser: Any) -> None:
    """Nothing of the lake has become markup, nothing is loaded from elsewhere, nothing failed."""
    assert browser.execute_script("return window.hacked") is None
    bold = "return [...document.querySelectorAll('b')].filter(e=>e.textContent==='bold').length"
    assert browser.execute_script(bold) == 0
    names = browser.execute_script("return performance.getEntriesByType('resource').map(e=>e.name)")
    assert [each for each in names if not each.startswith(("http://127.0.0.1:", "data:"))] == []
    assert [each for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []


def test_the_lake(browser: Any, address: str) -> None:
    text = shown(browser, address, "Lineage")
    assert "1 behind" in text
    assert "fresh" in text
    labels = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "svg a.node")]
    assert [label.split("\n")[0] for label in labels] == ["parts", "uses", "cost", "dear", "names"]
    assert len(browser.find_elements(By.CSS_SELECTOR, "svg path.edge")) == 4
    browser.find_element(By.LINK_TEXT, "cost").click()
    waited(browser, "Columns")
    assert browser.title == "cost · Viewkeep"


@pytest.mark.parametrize(
    ("panel", "text"),
    [
        ("about", "sum(p.price)"),
        ("history", "Seconds of each refresh"),
        ("plan", "How it is kept"),
        ("analysis", "lower bound"),
        ("rows", "2 rows"),
        ("changes", "5 → 6"),
    ],
)
def test_every_panel_of_a_view(browser: Any, address: str, panel: str, text: str) -> None:
    shown(browser, f"{address}#/view/cost/{panel}", text)
    if panel == "history":
        assert len(browser.find_elements(By.CSS_SELECTOR, "svg rect.bar")) == 8
    if panel == "plan":
        picture = browser.find_element(By.CSS_SELECTOR, ".picture img")
        assert browser.execute_script("return arguments[0].naturalWidth", picture) > 100
    if panel == "about":
        boxes = browser.find_elements(By.CSS_SELECTOR, "svg a.node")
        names = [box.get_attribute("data-name") for box in boxes]
        assert names == ["parts", "uses", "cost", "dear"], "what it reads, and what reads it"


def test_markup_in_names_and_rows_is_text(browser: Any, address: str) -> None:
    text = shown(browser, f"{address}#/table/parts", "Last changes")
    assert HOSTILE in text
    assert COLUMN in text
    assert HOSTILE in shown(browser, f"{address}#/view/cost", "Columns")
    assert HOSTILE in shown(browser, f"{address}#/view/names/rows", "3 rows")
    hostile = "#/view/%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E"
    assert "<img src=x" in shown(browser, address + hostile, "There is no view")


def test_the_playground(browser: Any, address: str) -> None:
    shown(browser, f"{address}#/play", "Show rows")
    box = browser.find_element(By.ID, "sql")
    box.send_keys("SELECT u.did, p.price FROM parts p JOIN uses u ON u.pid = p.pid")
    browser.find_element(By.ID, "explain").click()
    assert "Delta script" in waited(browser, "lower bound")
    browser.find_element(By.ID, "run").click()
    waited(browser, "3 rows")
    box.clear()
    box.send_keys("SELECT nope FROM parts")
    browser.find_element(By.ID, "run").click()
    body = "return document.body.innerText"
    WebDriverWait(browser, 60).until(lambda d: 'column "nope"' in d.execute_script(body))
    browser.get_log("browser")  # the refusal of the last query


def test_the_page_follows_the_lake(browser: Any, tmp_path: Path) -> None:
    keeper = hostile_lake(tmp_path / "lake")
    with served(keeper) as port:
        shown(browser, f"http://127.0.0.1:{port}/", "1 behind")
        keeper.refresh()
        gone = "return !document.body.innerText.includes('1 behind')"
        WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(gone))


def test_a_phone_and_a_dark_screen(browser: Any, address: str) -> None:
    size = {"width": 390, "height": 850, "deviceScaleFactor": 1, "mobile": True}
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for panel in (
            "",
            "#/view/cost",
            "#/view/cost/history",
            "#/view/cost/plan",
            "#/table/parts",
        ):
            shown(browser, address + panel, "As of")
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= 390, f"{panel} is wider than the screen"
        color = "return getComputedStyle(document.body).backgroundColor"
        light = browser.execute_script(color)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
        assert browser.execute_script(color) != light
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_report_needs_no_server(browser: Any, keeper: vk.Keeper, tmp_path: Path) -> None:
    from viewkeep.page.documents import report_document
    from viewkeep.page.html import page_html

    file = tmp_path / "lake.html"
    file.write_text(page_html(report_document(keeper, "/data/shop")), encoding="utf-8")
    browser.get("about:blank")
    browser.get(file.as_uri())
    body = "return document.body.innerText"
    for panel, text in (
        ("", "Lineage"),
        ("#/view/cost/history", "Seconds of each"),
        ("#/view/names/rows", "3 rows"),
        ("#/table/parts", HOSTILE),
        ("#/play", "runs nothing"),
    ):
        browser.get(f"{file.as_uri()}{panel}")
        WebDriverWait(browser, 60).until(lambda d, text=text: text in d.execute_script(body))
        assert browser.execute_script("return window.hacked") is None


def test_a_large_lake_is_there_soon(browser: Any, tmp_path: Path) -> None:
    """50 views and 1,000 refreshes in the long form; the time is from address to drawn page."""
    keeper = vk.Keeper(tmp_path / "lake", durable=False)
    rows = [(i, i % 7, i) for i in range(100)]
    keeper.create_table("t", {"id": "int", "g": "int", "v": "int"}, key=["id"], rows=rows)
    for number in range(VIEWS):
        source = "t" if number < VIEWS // 2 else f"v{number - VIEWS // 2}"
        key = "id" if source != "t" else "id, g"
        keeper.create_view(f"v{number}", f"SELECT {key}, v FROM {source} WHERE v > {number % 5}")
    for number in range(REFRESHES):
        keeper.apply("t", updates=[{"id": number, "v": 1000 + number}])
        keeper.refresh()
    with served(keeper) as port:
        shown(browser, f"http://127.0.0.1:{port}/", "Lineage")  # a first time, to warm up
        shown(browser, f"http://127.0.0.1:{port}/", "Lineage")
        assert len(browser.find_elements(By.CSS_SELECTOR, "svg a.node")) == VIEWS + 1
        box = browser.find_element(By.ID, "find") if VIEWS > 12 else None
        if box is not None:
            box.send_keys("v49")
            rows = browser.find_elements(By.CSS_SELECTOR, "tr[data-name]")
            assert [row.text.split()[0] for row in rows if row.is_displayed()] == ["v49"]
        took = browser.execute_script("return performance.getEntriesByName('drawn')[0].startTime")
        print(f"{VIEWS} views, {VIEWS * REFRESHES} refreshes: drawn after {took:.0f} ms")
        assert took < 10_000
        shown(browser, f"http://127.0.0.1:{port}/#/view/v0/history", "Seconds of each refresh")
        assert len(browser.find_elements(By.CSS_SELECTOR, "svg rect.bar")) == 4 * (REFRESHES + 1)
