"""The viewer in a real browser: searching, filtering, reading, links, keys, speed, hostile rows."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import headless_chromium
from helpers import wait_until
from report_files import HOSTILE, finish, make_run
from trajectile.report.building import make_report
from trajectile.results.sources import FinishedRows
from trajectile.rows import Trajectory
from trajectile.run_folder.paths import RunFolder

pytestmark = pytest.mark.browser
ROWS = 10_000
HOSTILE_ROW = 3
WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 420, "height": 860}
ROW_HEIGHT = 58
FRAME_MS = 1000 / 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = finish(make_run(tmp_path_factory.mktemp("viewer"), ROWS, owed=5))
    make_report(run.folder)
    return run.folder


@pytest.fixture(scope="module")
def rows(folder: RunFolder) -> list[Trajectory]:
    return sorted((found.row for found in FinishedRows(folder)), key=lambda row: row.prompt_index)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with headless_chromium() as chromium:
        yield chromium


SHOWN = """[...document.querySelectorAll(".row:not([hidden])")].map((row) =>
  [Number(row.getAttribute("aria-posinset")), Number(row.querySelector(".number").textContent)])"""


class Opened:
    """A page of the viewer that fails the test at its end for any error, dialog or request outside the run folder."""

    def __init__(self, browser: Any, page_file: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": WIDE, **options})
        self.page = self.context.new_page()
        self.file = page_file
        self.trouble: list[str] = []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("dialog", lambda dialog: self.trouble.append(dialog.message))
        self.page.on("request", self._check)
        self.page.goto(page_file.as_uri())

    def _check(self, request: Any) -> None:
        if not request.url.startswith(self.file.parent.as_uri()):
            self.trouble.append(request.url)

    def count(self, text: str) -> None:
        self.page.locator("#count").get_by_text(text, exact=True).wait_for()

    def prompts(self) -> list[int]:
        """The numbers of the rows that are in the document, by their place."""
        return [number for _, number in sorted(self.page.evaluate(SHOWN))]

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def heading(self, text: str) -> None:
        self.page.locator("#reader h2").get_by_text(text, exact=True).wait_for()


@pytest.fixture
def opened(browser: Any, folder: RunFolder) -> Iterator[Any]:
    pages: list[Opened] = []

    def open_page(**options: Any) -> Opened:
        pages.append(Opened(browser, folder.root / "viewer.html", **options))
        pages[-1].count("10,000 trajectories")
        return pages[-1]

    yield open_page
    for page in pages:
        assert page.trouble == []
        page.context.close()


def test_a_list_of_ten_thousand_rows_has_few_elements_in_dataset_order(opened: Any) -> None:
    viewer = opened()
    assert viewer.prompts() == list(range(len(viewer.prompts())))
    assert viewer.page.locator(".row").count() < 40
    assert viewer.page.title() == "run"


def test_search_finds_prompts_as_one_types_and_the_whole_text_on_enter(opened: Any, rows: list[Trajectory]) -> None:
    viewer = opened()
    viewer.press("/")
    viewer.page.keyboard.type('"TASK 4321:" mend')
    viewer.count("1 of 10,000")
    assert viewer.prompts() == [4321]
    assert viewer.page.locator(".row:visible mark").all_inner_texts() == ["Task 4321:", "mend"]

    viewer.page.fill("#query", "needle-77")
    viewer.count("0 of 10,000")
    viewer.press("Enter")
    viewer.page.get_by_text("Searched whole text").wait_for()
    held = [
        r.prompt_index for r in rows if any("needle-77" in c.arguments for t in r.conversations for c in t.tool_calls)
    ]
    viewer.count(f"{len(held)} of 10,000")
    assert set(viewer.prompts()) <= set(held) and len(held) > 10

    viewer.press("ArrowDown", "j", "Enter")
    viewer.heading(f"Prompt {held[0]}")
    assert viewer.page.locator("details.call[open] mark").first.inner_text() == "needle-77"


@pytest.mark.parametrize(
    ("box", "choice", "test"),
    [
        ("tool", "web_search", lambda row: row.tool_stats["web_search"].count > 0),
        ("end", "max_turns", lambda row: row.end_reason == "max_turns"),
        ("completed", "not completed", lambda row: not row.completed),
        ("reasoning", "no reasoning", lambda row: row.reasoning_stats.turns_with_reasoning == 0),
        (
            "reasoning",
            "in some turns",
            lambda row: 0 < row.reasoning_stats.turns_with_reasoning < row.reasoning_stats.total_assistant_turns,
        ),
        ("discarded", "discarded", lambda row: row.reasoning_stats.turns_with_reasoning == 0),
        ("failed", "failed tool calls", lambda row: any(stat.failure for stat in row.tool_stats.values())),
    ],
)
def test_filters(opened: Any, rows: list[Trajectory], box: str, choice: str, test: Any) -> None:
    viewer = opened()
    viewer.page.select_option(f"select[name={box}]", label=choice)
    wanted = [row.prompt_index for row in rows if test(row)]
    assert 0 < len(wanted) < ROWS
    viewer.count(f"{len(wanted):,} of 10,000")
    assert viewer.prompts() == wanted[: len(viewer.prompts())]
    viewer.page.click("#clear")
    viewer.count("10,000 trajectories")


def test_filters_and_search_go_together_and_the_order_can_be_chosen(opened: Any, rows: list[Trajectory]) -> None:
    viewer = opened()
    viewer.page.select_option("select[name=end]", label="finished")
    viewer.page.select_option("select[name=failed]", label="no failed call")
    viewer.page.fill("#query", "csv")
    viewer.page.select_option("select[name=order]", label="most tokens")
    wanted = [
        row
        for row in rows
        if row.end_reason == "finished"
        and not any(stat.failure for stat in row.tool_stats.values())
        and "CSV" in row.conversations[-1].value + next(t.value for t in row.conversations if t.from_ == "human")
    ]
    viewer.count(f"{len(wanted):,} of 10,000")
    wanted.sort(key=lambda row: -(row.usage.prompt_tokens + row.usage.completion_tokens))
    assert viewer.prompts()[:10] == [row.prompt_index for row in wanted[:10]]


def test_a_trajectory_reads_in_order_with_reasoning_apart_and_calls_folded(opened: Any, rows: list[Trajectory]) -> None:
    viewer = opened()
    row = next(r for r in rows if len(r.conversations) > 6 and r.completed and r.reasoning_stats.turns_with_reasoning)
    calls = [call for turn in row.conversations for call in turn.tool_calls]
    viewer.page.fill("#query", f'"task {row.prompt_index}:"')
    viewer.count("1 of 10,000")
    viewer.page.click(".row:visible")
    viewer.heading(f"Prompt {row.prompt_index}")
    page = viewer.page
    assert page.locator(".call .name").all_inner_texts() == [call.name for call in calls]
    assert page.locator(".call[open]").count() == 0 and page.locator(".call .part").count() == 0
    thoughts = [turn.reasoning for turn in row.conversations if turn.reasoning]
    assert [text.strip() for text in page.locator(".thought .value").all_text_contents()] == [
        t.strip() for t in thoughts
    ]
    page.locator("#reader").focus()
    viewer.press("o")
    page.locator(".call[open] .part").nth(len(calls) * 2 - 1).wait_for()
    assert page.locator(".call .part").count() == 2 * len(calls)
    failed = sum(turn.value.startswith(("Error:", '{"error"')) for turn in row.conversations if turn.from_ == "tool")
    assert page.locator(".call.failed").count() == failed
    viewer.press("r")
    assert page.locator(".thought[open]").count() == 0
    viewer.press("w")
    assert f'"prompt_key": "{row.prompt_key}"' in page.locator("#json").inner_text()
    assert page.locator(".turn:visible").count() == 0
    viewer.press("w")
    assert page.locator("#json").count() == 0 and page.locator(".turn:visible").count() > 0


def test_keys_walk_through_the_list(opened: Any) -> None:
    viewer = opened()
    viewer.page.locator("#list").focus()
    viewer.press("j", "j", "j", "k")
    viewer.heading("Prompt 1")
    viewer.press("G")
    viewer.heading(f"Prompt {ROWS - 1}")
    assert viewer.page.locator('.row[aria-selected="true"]').inner_text().startswith(str(ROWS - 1))
    viewer.press("g")
    viewer.heading("Prompt 0")
    viewer.press("?")
    assert viewer.page.locator("#help").is_visible()
    viewer.press("Escape")
    assert not viewer.page.locator("#help").is_visible()
    viewer.press("/")
    viewer.page.keyboard.type("jk?")
    assert viewer.page.locator("#query").input_value() == "jk?"
    viewer.press("Escape")
    assert viewer.page.evaluate("document.activeElement.id") == "list"


def test_a_copied_link_opens_the_same_row_elsewhere(opened: Any, browser: Any, folder: RunFolder) -> None:
    viewer = opened(permissions=["clipboard-read", "clipboard-write"])
    viewer.page.fill("#query", '"task 8765:"')
    viewer.count("1 of 10,000")
    viewer.page.click(".row:visible")
    viewer.heading("Prompt 8765")
    viewer.page.get_by_role("button", name="Link").click()
    viewer.page.get_by_text("Link copied").wait_for()
    link = viewer.page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(re.escape((folder.root / "viewer.html").as_uri()) + r"#[0-9a-f]{16}-0", link)
    assert viewer.page.url == link

    other = opened(viewport=NARROW)
    other.page.goto("about:blank")
    other.trouble.clear()
    other.page.goto(link)
    other.heading("Prompt 8765")
    assert other.page.locator("#reader").is_visible() and not other.page.locator("#list").is_visible()
    other.press("Escape")
    # the list is drawn with the next frame
    wait_until(lambda: 8765 in other.prompts(), "the row in sight")
    assert 8765 in other.prompts()


def test_a_link_to_no_row_says_so(opened: Any) -> None:
    viewer = opened()
    viewer.page.evaluate("location.hash = '#<img src=x>'")
    viewer.page.get_by_text("This run has no row <img src=x>.").wait_for()


def test_hostile_rows_are_shown_as_the_text_they_are(opened: Any) -> None:
    viewer = opened()
    page = viewer.page
    assert "</script><script>window.hacked=1</script>" in page.locator(f"#row-{HOSTILE_ROW}").inner_text()
    page.click(f"#row-{HOSTILE_ROW}")
    viewer.heading(f"Prompt {HOSTILE_ROW}")
    viewer.press("o")
    page.locator(".call[open] .part").first.wait_for()
    assert page.locator(".human .value").text_content() == f"Hostile prompt {HOSTILE_ROW} {HOSTILE}"
    fields = page.locator(".call").first.locator(".field")
    assert fields.locator("pre").all_text_contents() == [HOSTILE, HOSTILE]
    assert fields.locator(".label").all_text_contents() == ["command", "__proto__"]
    assert page.locator("#reader :is(script, img, svg, iframe)").count() == 0
    page.fill("#query", "onerror='window <script>")
    viewer.count("1 of 10,000")
    page.click(".row:visible")
    page.locator("#reader mark").first.wait_for()
    assert page.evaluate("window.hacked") is None


SCROLL = """async () => {
  const list = document.getElementById("list");
  for (let frame = 0; frame < 60; frame++) {
    list.scrollTop += 173;
    await new Promise(requestAnimationFrame);
  }
}"""


@pytest.mark.parametrize(
    ("height", "scale", "budget_ms"),
    [(900, 1, FRAME_MS), (400 * ROW_HEIGHT + 400, 0.1, 2 * FRAME_MS)],
    ids=["a screen", "400 rows in sight"],
)
def test_scrolling_takes_less_than_a_frame_a_step(opened: Any, height: int, scale: float, budget_ms: float) -> None:
    viewer = opened(viewport={"width": 1400, "height": height}, device_scale_factor=scale)
    viewer.page.evaluate(SCROLL)
    session = viewer.context.new_cdp_session(viewer.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time: other processes do not count
    before = _task_seconds(session)
    viewer.page.evaluate(SCROLL)
    assert (_task_seconds(session) - before) / 60 * 1000 < budget_ms
    shown = viewer.prompts()
    assert len(shown) >= (height - 400) // ROW_HEIGHT
    assert shown == list(range(shown[0], shown[0] + len(shown))) and shown[0] > 300


def _task_seconds(session: Any) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_width_and_scheme_can_be_read(opened: Any, scheme: str, viewport: dict[str, int]) -> None:
    viewer = opened(viewport=viewport, color_scheme=scheme)
    viewer.page.locator("#list").focus()
    viewer.press("j", "j", "j", "Enter")
    viewer.heading("Prompt 2")
    viewer.press("o")
    assert viewer.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert viewer.page.evaluate("document.getElementById('reader').scrollWidth <= innerWidth")
    background, colour = (
        sum(map(int, re.findall(r"\d+", viewer.page.evaluate(f"getComputedStyle(document.body).{name}"))[:3]))
        for name in ("backgroundColor", "color")
    )
    assert (background > 600 and colour < 200) if scheme == "light" else (background < 200 and colour > 600)


def test_missing_and_mixed_data_are_explained(browser: Any, tmp_path: Path) -> None:
    run = finish(make_run(tmp_path, 30))
    make_report(run.folder)
    chunk = run.folder.root / "viewer_data" / "chunk_0.js"
    chunk.write_bytes(re.sub(rb'"[0-9a-f]+"', b'"0"', chunk.read_bytes(), count=1))
    viewer = Opened(browser, run.folder.root / "viewer.html")
    viewer.count("30 trajectories")
    viewer.press("j")
    viewer.page.get_by_text("Reload this page").wait_for()
    chunk.rename(chunk.with_suffix(".gone"))
    viewer.press("j")
    viewer.page.get_by_text("viewer_data/chunk_0.js is missing").wait_for()
    (run.folder.root / "viewer_data" / "about.js").write_text("nonsense(")
    viewer.page.reload()
    viewer.page.get_by_text("viewer_data/about.js is damaged").wait_for()


def test_an_empty_run_says_so(browser: Any, tmp_path: Path) -> None:
    run = finish(make_run(tmp_path, 0, owed=1))
    make_report(run.folder)
    viewer = Opened(browser, run.folder.root / "viewer.html")
    viewer.page.get_by_text("No prompt of this run has finished yet.").wait_for()
    assert viewer.trouble == []
