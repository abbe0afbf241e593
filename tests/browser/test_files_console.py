"""A person sends to a spreadsheet from the console: from Home to the results."""

from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from playwright.sync_api import Locator, expect

from access.clients import registry
from domain.time import utc_now
from notifications.files import control, parts, repository
from notifications.files.control import NewFileRequest
from notifications.intake.requests import Caller
from notifyproject.db.collections import collection
from tests.browser.accessibility import check
from tests.browser.screen import Screen
from tests.support.factories import files
from tests.support.factories.broadcasts import run_to_completion
from tests.support.factories.console_files import NAME, allow, id_in, url
from tests.support.factories.files import TYPE, csv_of, row, rows

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture(autouse=True)
def _type(db: None) -> None:
    allow()


@pytest.fixture
def spreadsheet(tmp_path: Path) -> Path:
    """Return a file of 20 rows, of which 3 are wrong."""
    path = tmp_path / "customers.csv"
    path.write_bytes(csv_of(*rows(17), *(row(number, f"wrong{number}") for number in range(3))))
    return path


def sent() -> list[Any]:
    return list(collection("notifications").find())


def work(screen: Screen, *, step: str = "columns") -> str:
    """Do what a worker would with the file, once its page is that of a step. Return its ID."""
    screen.page.wait_for_url(f"**/{step}/")
    file_id = id_in(screen.page.url)
    files.run(file_id)
    return file_id


def test_twenty_rows_with_three_errors_are_sent_in_twelve_actions(
    screen: Screen, spreadsheet: Path
) -> None:
    page, actions = screen.page, 0

    def click(control: Locator) -> None:
        nonlocal actions
        actions += 1
        screen.reach(control).click()

    screen.sign_in()
    screen.open("/admin/")
    screen.choose("Send to a file")
    check(screen)
    page.locator("#id_file").set_input_files(spreadsheet)
    click(page.get_by_role("button", name="Upload"))
    file_id = work(screen)
    expect(page.locator("h2", has_text="What is in the columns?")).to_be_visible()
    check(screen)
    click(page.get_by_role("button", name="Check the rows"))
    work(screen, step="check")
    screen.shows(page.locator("h2", has_text="17 of 20 rows can be sent"))
    expect(page.get_by_text("Rows 19, 20, 21")).to_be_visible()
    check(screen)
    with page.expect_download() as download:
        click(page.get_by_role("link", name="Download the wrong rows"))
    assert Path(download.value.path()).read_text("utf-8-sig").count("\n") == 4
    click(page.get_by_role("link", name="Preview the 17 good rows"))
    mail = page.frame_locator("iframe[name=mail]")
    expect(mail.locator("body")).to_contain_text("Sunrise")
    check(screen)
    click(page.get_by_role("button", name="Continue"))
    screen.shows(page.locator("h2", has_text="Send 17 messages"))
    check(screen)
    click(page.get_by_label("Send without the 3 wrong rows"))
    click(page.get_by_role("button", name="Send 17 messages"))
    screen.shows(page.get_by_text("Accepted."))
    run_to_completion(ObjectId(file_id), at=utc_now())
    screen.shows(page.get_by_text("17 of ~17 processed"))
    expect(page.get_by_text("Queued").first).to_be_visible()
    check(screen)
    assert len(sent()) == 17
    # With the entry of the menu and the choice of the file.
    assert actions + 2 <= 12


def test_a_file_is_sent_by_the_keyboard_alone(screen: Screen, spreadsheet: Path) -> None:
    page, press = screen.page, screen.page.keyboard.press
    spreadsheet.write_bytes(csv_of(*rows(3)))
    screen.sign_in()
    screen.open("/admin/")
    press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type("send to a file")
    expect(page.get_by_role("option", name="Send to a file")).to_be_visible()
    press("Enter")
    page.wait_for_url("**/admin/files/")
    screen.wait_for_scripts()
    page.locator("#id_file").focus()
    # A page that was just opened by a key shows no chooser before it has been drawn.
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    with page.expect_file_chooser() as chooser:
        press("Enter")
    chooser.value.set_files(spreadsheet)
    page.get_by_role("button", name="Upload").focus()
    press("Enter")
    file_id = work(screen)
    for name in ("Check the rows", "Preview", "Continue", "Send 3 messages"):
        control = page.get_by_role("button", name=name, exact=True)
        control = control.or_(page.get_by_role("link", name=name, exact=True)).last
        control.focus()
        press("Enter")
        if name == "Check the rows":
            work(screen, step="check")
    expect(page.get_by_text("Accepted.")).to_be_visible()
    run_to_completion(ObjectId(file_id), at=utc_now())
    assert len(sent()) == 3


def test_a_file_is_dropped_and_continues_after_a_lost_connection(
    screen: Screen, spreadsheet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = screen.page
    monkeypatch.setattr(repository, "CHUNK_BYTES", 200)
    screen.sign_in()
    screen.open("/admin/files/")
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.items.add(new File([text], "dropped.csv"));
            document.querySelector(".drop-area").dispatchEvent(
                new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        spreadsheet.read_bytes().decode(),
    )
    page.route("**/chunk/?number=2", lambda route: route.abort())
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("The connection was lost.")).to_be_visible()
    page.unroute("**/chunk/?number=2")
    screen.problems.clear()
    (document,) = collection("audience_files").find()
    screen.open(f"/admin/files/{document['_id']}/upload/")
    check(screen)
    page.locator("#id_file").set_input_files(spreadsheet)
    page.get_by_role("button", name="Continue").click()
    assert work(screen) == str(document["_id"])
    assert repository.get(document["_id"])["good"] == 17


def test_upload_that_is_continued_has_nothing_of_another_file(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, other = csv_of(row(1)), csv_of(row(2))
    monkeypatch.setattr(repository, "CHUNK_BYTES", len(content) - 1)
    document = control.create(
        NewFileRequest(type=TYPE, name=NAME, size=len(content)),
        caller=Caller(client_id=registry.console_client_id(now=utc_now()), idempotency_key="k"),
        now=utc_now(),
    ).document
    control.store_chunk(document, 0, other[:-1], now=utc_now())
    screen.sign_in()
    screen.open(url(str(document["_id"]), "upload/"))
    file = {"name": NAME, "mimeType": "text/csv", "buffer": content}
    screen.page.locator("#id_file").set_input_files(file)
    screen.page.get_by_role("button", name="Continue").click()
    screen.page.wait_for_url("**/columns/")
    stored = [parts.read_chunk(document["_id"], number) for number in (0, 1)]
    assert stored == [content[:-1], content[-1:]]


def test_what_can_not_be_uploaded_is_said_by_name(screen: Screen, tmp_path: Path) -> None:
    page = screen.page
    empty, picture = tmp_path / "empty.csv", tmp_path / "picture.csv"
    empty.write_bytes(b"")
    picture.write_bytes(b"%PDF-1.7")
    screen.sign_in()
    screen.open("/admin/files/")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert").get_by_text("Choose a file.")).to_be_visible()
    page.locator("#id_file").set_input_files(empty)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert").get_by_text("at most 20 MB")).to_be_visible()
    check(screen)
    screen.problems.clear()
    page.locator("#id_file").set_input_files(picture)
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/columns/")
    files.run(id_in(page.url))
    screen.shows(page.get_by_text("This is a PDF file. Save it as XLSX or CSV."))
    check(screen)
