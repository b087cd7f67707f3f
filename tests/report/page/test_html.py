"""The page: one file that needs no network, looked at in a real browser where there is one."""

import re
import shutil
from pathlib import Path

import pytest

from cdqn.integrations import plotly
from cdqn.report.page.content import Experiment, Page, charts_of
from cdqn.report.page.html import render
from cdqn.report.reproduction import Claim, Point

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


def make_page():
    points = [
        Point(algorithm, "SpaceInvaders", step, quantity, value * step, 0.1)
        for algorithm, value in (("cdqn", 1.0), ("dqn", 3.0))
        for quantity in ("return", "loss")
        for step in range(1, 30)
    ]
    claims = [
        Claim("DQN diverges <script>alert(1)</script>", "> 10 times", "12 times", True),
        Claim("a very long sentence of the paper " * 5, "x", "y" * 80, False),
        Claim("a number", "1", "2", None),
    ]
    about = {
        "name": "fig5",
        "label": "Fig. 5",
        "title": "half of it <b>discarded</b>",
        "section": "Sec. 5.2",
        "about": "3 runs",
        "command": "cdqn reproduce fig5 --scale laptop " + "--seed 0 " * 20,
        "seconds": 4000,
        "versions": {"torch": "2.13"},
        "settings": {"C-DQN": "gamma 0.999"},
    }
    return Page("out", [Experiment("fig5", about, charts_of(points, []), claims)], ["fig7 is left out: no <reason>"])


@pytest.fixture(scope="module")
def text():
    return render(make_page())


def test_foreign_text_is_text(text):
    own = text.replace(text[text.index("<script>") : text.index("</script>")], "")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in own
    assert "<script>alert(1)" not in own
    assert "&lt;b&gt;discarded" in own
    assert "no &lt;reason&gt;" in own


def test_everything_is_inside(text):
    tags = re.findall(r"<(?:script|link|img|iframe|a)\b[^>]*>", text.replace(plotly.script(), ""))
    assert len(tags) >= 4
    assert [tag for tag in tags if re.search(r'(?:src|href)="(?!#)', tag)] == []


def test_verdicts_command_duration_and_versions_are_told(text):
    for words in ("holds", "does not hold", "reported", "1 of 2 claims hold", "cdqn reproduce fig5", "67 min", "2.13"):
        assert words in text
    assert "gamma 0.999" in text


@pytest.fixture(scope="module")
def browser(text, tmp_path_factory):
    """Chromium without a window, on the page."""
    if not BROWSER or not DRIVER:
        pytest.skip("no chromium and chromedriver on this machine: apt install chromium chromium-driver")
    from selenium import webdriver

    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(text)
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        driver.get(Path(path).as_uri())
        driver.execute_async_script("const done = arguments[0]; setTimeout(done, 500)")
        yield driver
    finally:
        driver.quit()


def test_the_console_has_no_error(browser):
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert severe == []


def curves(browser, chart):
    """The paths of the lines that are shown in a chart."""
    count = "return document.querySelectorAll('#' + arguments[0] + ' .scatterlayer .js-line').length"
    return browser.execute_script(count, chart)


def test_curves_are_drawn(browser):
    for chart in ("fig5-0", "fig5-1"):
        assert curves(browser, chart) == 4  # two lines, and the edges of their bands
    length = "return document.querySelector('#fig5-0 .scatterlayer .js-line').getTotalLength()"
    assert browser.execute_script(length) > 100


def test_a_series_can_be_hidden(browser):
    from selenium.webdriver.common.by import By

    before = curves(browser, "fig5-0")
    browser.find_element(By.CSS_SELECTOR, "#fig5-0 .legendtoggle").click()
    browser.execute_async_script("const done = arguments[0]; setTimeout(done, 1000)")  # a click may become a double one
    assert curves(browser, "fig5-0") == before - 2


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(browser, width):
    emulate = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", emulate)
    browser.execute_async_script("const done = arguments[0]; setTimeout(done, 500)")
    widths = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1] == width
    chart = "const r = document.querySelector('#fig5-0 .main-svg').getBoundingClientRect(); return [r.left, r.right]"
    left, right = browser.execute_script(chart)
    assert left >= 0
    assert right <= width
