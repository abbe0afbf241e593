"""A file of recipients on the pages of the console: upload, columns, check, preview, and send."""

import csv
import re
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from bson import ObjectId
from django.conf import settings
from django.test import Client

from access.clients import registry
from access.models import StaffUser
from console.files import labels
from console.files.upload import NOT_A_FORM
from domain.time import utc_now
from notifications.broadcasts import repository as broadcasts
from notifications.catalog import types
from notifications.documents.files import MessagesTotal
from notifications.files import parts, repository
from notifications.files.downloads import NOT_SENT
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories.broadcasts import run_to_completion
from tests.support.factories.console_files import (
    NAME,
    START,
    allow,
    checked,
    columns_of,
    id_in,
    page_of,
    upload,
    url,
)
from tests.support.factories.files import HEADER, TYPE, csv_of, row, rows, run
from tests.support.factories.notifications import suppress
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

OPERATOR = (
    "notifications.send_file",
    "notifications.view_broadcast",
    "notifications.view_notification",
    "notifications.pause_broadcast",
    "notifications.cancel_broadcast",
)


@pytest.fixture(autouse=True)
def _type(db: None) -> None:
    allow()


@pytest.fixture
def clara(db: None) -> Client:
    """Return a client of an operator."""
    return signed_in(make_staff("clara", *OPERATOR))


@pytest.fixture
def otto(db: None) -> Client:
    """Return a client of another operator."""
    return signed_in(make_staff("otto", *OPERATOR))


def stored(file_id: str) -> Any:
    return repository.get(ObjectId(file_id))


def sent() -> list[Any]:
    return list(collection("notifications").find().sort("_id", 1))


def audited() -> list[str]:
    entries = collection("django_admin_log").find().sort("_id", 1)
    return [entry["change_message"] for entry in entries]


def confirmation(client: Client, file_id: str) -> dict[str, str]:
    """Return the inputs of the confirmation as they are shown."""
    page = client.get(url(file_id, "confirm/")).content.decode()
    hidden = re.findall(r'<input type="hidden" name="(version|check)" value="([^"]*)">', page)
    assert len(hidden) == 2, page
    is_chosen = re.search(r'name="without_wrong"[^>]* checked', page) is not None
    return (
        dict(hidden)
        | {"when": "now", "step": "send"}
        | ({"without_wrong": "on"} if is_chosen else {})
    )


class TestUpload:
    def test_file_is_uploaded_by_a_form_without_scripts(self, clara: Client) -> None:
        answer = upload(clara, csv_of(*rows(3)))
        file_id = id_in(answer["Location"])
        assert answer["Location"] == url(file_id, "columns/")
        document = stored(file_id)
        assert document["client_id"] == registry.find_client("console")
        assert document["uploaded_by"] == str(StaffUser.objects.get(username="clara").pk)
        assert document["status"] == "reading"
        assert "Reading the file" in page_of(clara.get(answer["Location"]))
        assert audited() == ["Uploaded."]

    def test_script_sends_the_chunks_and_continues_after_a_loss(
        self, clara: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        content = csv_of(*rows(9))
        monkeypatch.setattr(repository, "CHUNK_BYTES", len(content) // 3 + 1)
        size = repository.CHUNK_BYTES
        given = {"type": TYPE, "name": NAME, "size": len(content)}
        state = clara.post(START, given, headers={"Accept": "application/json"}).json()
        assert (state["missing"], state["chunk_bytes"]) == ([0, 1, 2], size)

        def send(number: int) -> int:
            part = content[number * size : (number + 1) * size]
            place = f"{state['chunk_url']}?number={number}"
            return clara.post(place, part, content_type="application/octet-stream").status_code

        assert send(1) == 200
        page = page_of(clara.get(state["url"]))
        assert "The upload stopped" in page
        assert '"missing": [0, 2]' in page
        assert "continues where" not in page
        assert page_of(clara.post(state["url"])).count("Choose a file") == 1
        assert {send(0), send(2), send(2)} == {200}
        assert clara.post(state["url"])["Location"].endswith("/columns/")
        file_id = id_in(state["url"])
        run(file_id)
        assert stored(file_id)["good"] == 9
        assert send(0) == 409
        assert send(3) == 404

    def test_chunk_in_a_form_is_refused_by_name(self, clara: Client) -> None:
        """The check of the form's token has read the body by then."""
        content = csv_of(*rows(1))
        given = {"type": TYPE, "name": NAME, "size": len(content)}
        state = clara.post(START, given, headers={"Accept": "application/json"}).json()
        clara.handler.enforce_csrf_checks = True
        token = "t" * 32
        clara.cookies[settings.CSRF_COOKIE_NAME] = token
        form = {"chunk": BytesIO(content), "csrfmiddlewaretoken": token}
        answer = clara.post(f"{state['chunk_url']}?number=0", form)
        assert (answer.status_code, answer.json()) == (415, {"problems": [NOT_A_FORM]})

    @each_case(
        "fields, words",
        [
            ({"type": ""}, "Choose what to send."),
            ({"type": "mfa_code"}, "Select a valid choice"),
            ({"size": "0"}, "a file has at most 20 MB"),
            ({"size": str(20 * 2**20 + 1)}, "a file has at most 20 MB"),
            ({"size": ""}, "Choose a file."),
            ({"name": "a\x07b"}, "control"),
        ],
    )
    def test_upload_is_refused_by_name(
        self, clara: Client, fields: dict[str, str], words: str
    ) -> None:
        given = {"type": TYPE, "name": NAME, "size": "5"} | fields
        answer = clara.post(START, given, headers={"Accept": "application/json"})
        assert answer.status_code == 422
        assert words in " ".join(answer.json()["problems"])
        assert words in page_of(clara.post(START, given))
        assert collection("audience_files").count_documents({}) == 0

    def test_unreadable_file_says_why(self, clara: Client) -> None:
        file_id = checked(clara, b'email\n"open')
        page = page_of(clara.get(url(file_id, "columns/"), follow=True))
        assert "be read" in page
        assert "A quotation mark" in page

    def test_types_are_those_that_staff_may_send(self, clara: Client) -> None:
        page = page_of(clara.get(START))
        assert "Payment confirmed" in page
        assert "Order shipped" not in page
        types.store_type(TYPE, {"console_send": False}, now=utc_now())
        types.invalidate_types()
        assert "No type can be sent from the console yet" in page_of(clara.get(START))


class TestColumns:
    def test_guesses_and_samples_are_shown_with_what_was_detected(self, clara: Client) -> None:
        header = ("E-mail", "Order ID", "video_title", "amount", "note")
        content = csv_of(
            ("ada@example.com", "1", "Sunrise", "2.50", ""),
            ("bob@example.com", "2", "Sunset", "3.50", ""),
            header=header,
        )
        file_id = checked(clara, content.replace(b",", b";"))
        shown = columns_of(clara, file_id)
        assert [shown[f"column-{index}"] for index in range(5)] == [
            "email",
            "data.order_id",
            "data.video_title",
            "data.amount",
            "",
        ]
        page = page_of(clara.get(url(file_id, "columns/")))
        for words in (NAME, "UTF-8, separated by semicolons", "ada@example.com", "Sunset", "Empty"):
            assert words in page, words

    def test_missing_columns_are_said_and_chosen(self, clara: Client) -> None:
        header = ("email", "Number", "Film", "amount")
        file_id = checked(clara, csv_of(("a@b.co", "1", "Sunrise", "2"), header=header))
        place = url(file_id, "columns/")
        assert "requires order_id, video_title" in page_of(clara.get(place))
        assert clara.get(url(file_id, "check/"))["Location"] == place
        given = columns_of(clara, file_id)
        twice = page_of(clara.post(place, given | {"column-1": "email"}))
        assert "Two columns can&#x27;t both be email." in twice
        chosen = {"column-1": "data.order_id", "column-2": "data.video_title"}
        answer = clara.post(place, given | chosen)
        assert answer["Location"] == url(file_id, "check/")
        assert "Checking the rows" in page_of(clara.get(answer["Location"]))
        run(file_id)
        assert "1 of 1 rows can be sent" in page_of(clara.get(answer["Location"]))
        again = checked(clara, csv_of(("c@d.co", "2", "Sunset", "3"), header=header))
        assert stored(again)["status"] == "checked", "columns are known for the type and header"

    def test_same_columns_are_checked_again_unless_their_check_runs(self, clara: Client) -> None:
        file_id = checked(clara, csv_of(*rows(2)))
        given = columns_of(clara, file_id)
        number = stored(file_id)["check_number"]
        suppress("user1@example.com")
        for _ in range(2):
            clara.post(url(file_id, "columns/"), given)
            assert stored(file_id)["check_number"] == number + 1
        run(file_id)
        assert (stored(file_id)["good"], stored(file_id)["skipped"]) == (1, 1)

    def test_country_reads_phones_without_their_sign(self, clara: Client) -> None:
        content = csv_of(("912345678", "1", "Sunrise", "1"), header=("phone", *HEADER[1:]))
        file_id = checked(clara, content)
        assert "Spreadsheets remove it" in page_of(clara.get(url(file_id, "columns/")))
        given = columns_of(clara, file_id) | {"country": "PT", "duplicates": "last"}
        clara.post(url(file_id, "columns/"), given)
        run(file_id)
        assert (stored(file_id)["wrong"], stored(file_id)["duplicates"]) == (0, "last")
        again = checked(clara, content, again=file_id)
        assert (stored(again)["country"], stored(again)["duplicates"]) == ("PT", "last")

    def test_lists_of_another_client_are_unknown(self, clara: Client) -> None:
        file_id = checked(clara, csv_of(*rows(1)))
        other = registry.create_client(name="shop", scopes=[], now=utc_now())
        collection("audience_files").update_one(
            {"_id": ObjectId(file_id)}, {"$set": {"client_id": other}}
        )
        for page in ("", "columns/", "check/", "preview/", "rows/", "wrong.csv"):
            assert clara.get(url(file_id, page))["Location"] == START


class TestCheck:
    def test_errors_come_first_grouped_with_row_numbers(self, clara: Client) -> None:
        suppress("user1@example.com")
        file_id = checked(clara, csv_of(*rows(3), row(7, "wrong"), row(8, "none"), row(0)))
        page = page_of(clara.get(url(file_id, "check/")))
        assert "2 of 6 rows can be sent" in page
        assert page.index("Expected one address") < page.index("Skipped rows")
        assert '<span class="quiet">Rows 5, 6</span></td> <td class="number">2</td>' in page
        assert "Upload the corrected file" in page

    def test_progress_reloads_the_page_at_its_end(self, clara: Client) -> None:
        file_id = id_in(upload(clara, csv_of(*rows(2)))["Location"])
        place = url(file_id, "progress/")
        assert "hx-get" in page_of(clara.get(place, {"was": "reading"}))
        run(file_id)
        assert clara.get(place, {"was": "reading"})["HX-Refresh"] == "true"

    def test_wrong_rows_are_downloaded_and_upload_again(self, clara: Client) -> None:
        header = ("who", "n", "film", "price")
        content = csv_of(("nobody", "=1", "Sunrise", "2"), row(1), header=header)
        first = checked(clara, content.replace(b",", b";"))
        targets = ("email", "data.order_id", "data.video_title", "data.amount")
        given = {f"column-{index}": target for index, target in enumerate(targets)}
        clara.post(url(first, "columns/"), given)
        run(first)
        answer = clara.get(url(first, "wrong.csv"))
        text = answer.getvalue().decode()
        assert text.startswith("\ufeffwho;n;film;price;problem\r\n"), "as Excel opened the upload"
        assert NAME not in answer["Content-Disposition"]
        ((*cells, problem),) = list(csv.reader(text.splitlines()[1:], delimiter=";"))
        assert problem.startswith("email: Expected one address")
        assert cells[1] == "'=1"
        corrected = text.replace("nobody", "ada@example.com").encode()
        again = checked(clara, corrected, again=first)
        assert stored(again)["status"] == "checked", "the columns are kept"
        assert stored(again)["good"] == 1
        assert "Downloaded: wrong rows." in audited()

    @each_case(
        "wrong, is_suggested",
        [(0, True), (1, True), (2, False)],
    )
    def test_good_rows_are_suggested_up_to_one_percent_of_errors(
        self, clara: Client, wrong: int, is_suggested: bool
    ) -> None:
        bad = [row(500 + number, f"wrong{number}") for number in range(wrong)]
        file_id = checked(clara, csv_of(*rows(100 - wrong), *bad))
        page = page_of(clara.get(url(file_id, "check/")))
        primary = re.findall(r'class="button button-primary" href="[^"]*">([^<]+)<', page)
        assert primary == ["Preview" if is_suggested else "Upload the corrected file"]
        shown = confirmation(clara, file_id)
        assert ("without_wrong" in shown) is (is_suggested and wrong > 0)

    def test_same_file_that_was_sent_is_named(self, clara: Client) -> None:
        content = csv_of(*rows(2))
        first = checked(clara, content)
        clara.post(url(first, "confirm/"), confirmation(clara, first))
        page = page_of(clara.get(url(checked(clara, content), "check/")))
        assert "The same file was sent" in page
        assert f"/admin/notifications/broadcast/{first}/change/" in page

    def test_file_is_removed(self, clara: Client) -> None:
        file_id = checked(clara, csv_of(*rows(2)))
        clara.post(url(file_id, "remove/"))
        assert stored(file_id)["status"] == "removed"
        assert collection("audience_file_parts").count_documents({}) == 0
        assert "2 of 2 rows were right" in page_of(clara.get(url(file_id, "check/")))
        assert clara.get(url(file_id, "preview/"))["Location"] == url(file_id, "check/")

    def test_file_that_is_sent_in_another_tab_meanwhile_is_not_removed(
        self, clara: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file_id = checked(clara, csv_of(*rows(2)))
        given = confirmation(clara, file_id)
        find = broadcasts.get

        def find_and_send(broadcast_id: ObjectId) -> Any:
            found = find(broadcast_id)
            monkeypatch.undo()
            clara.post(url(file_id, "confirm/"), given)
            return found

        monkeypatch.setattr(broadcasts, "get", find_and_send)
        page = page_of(clara.post(url(file_id, "remove/"), follow=True))
        assert "The file is being sent. Cancel its broadcast first." in page
        run_to_completion(ObjectId(file_id), at=utc_now())
        assert len(sent()) == 2


class TestPreview:
    def test_any_row_is_shown_as_it_would_be_sent(self, clara: Client) -> None:
        long = ("c@example.com", "3", "A much longer title", "3.50")
        file_id = checked(clara, csv_of(*rows(2), long, row(9, "wrong")))
        first = page_of(clara.get(url(file_id, "preview/")))
        assert "Row 2, to user0@example.com" in first
        assert "Most text: 4" in first
        assert "A much longer title" in page_of(clara.get(url(file_id, "preview/?row=2&chosen=4")))
        wrong = page_of(clara.get(url(file_id, "preview/?row=5")))
        assert "It isn't sent. email: Expected one address" in wrong
        assert "The file has no row 99." in page_of(clara.get(url(file_id, "preview/?row=99")))
        mail = clara.post(url(file_id, "email/"), {"row": "4"})
        assert "A much longer title" in mail.content.decode()
        assert clara.post(url(file_id, "email/"), {"row": "5"}).status_code == 404
        assert sent() == []

    def test_row_without_a_language_is_offered(self, clara: Client) -> None:
        header = (*HEADER, "locale")
        content = csv_of((*row(1), "pt"), (*row(2), ""), header=header)
        page = page_of(clara.get(url(checked(clara, content), "preview/")))
        assert "No language: 3" in page

    def test_text_of_a_type_without_a_template_is_the_same_for_all(self, clara: Client) -> None:
        allow("marketing")
        content = csv_of(("ada@example.com",), ("bob@example.com",), header=("email",))
        file_id = checked(clara, content, slug="marketing")
        place = url(file_id, "preview/")
        assert "the same text for all rows" in page_of(clara.get(place))
        assert clara.get(url(file_id, "confirm/"))["Location"] == place
        text = {"subject": "Spring", "body": "It is <spring>."}
        assert "It is &lt;spring&gt;." in page_of(clara.post(place, text))
        assert "Enter the text." in page_of(clara.post(place, {"subject": "", "body": " "}))
        page = clara.post(url(file_id, "confirm/"), text).content.decode()
        shown = dict(re.findall(r'name="(version|check)" value="([^"]*)"', page))
        answer = clara.post(
            url(file_id, "confirm/"), text | shown | {"when": "now", "step": "send"}
        )
        assert answer["Location"] == url(file_id, "rows/")
        run_to_completion(ObjectId(file_id), at=utc_now())
        assert {one["content"]["subject"] for one in sent()} == {"Spring"}


class TestConfirmation:
    def test_good_rows_are_sent_once_by_two_tabs(self, clara: Client) -> None:
        file_id = checked(clara, csv_of(*rows(17), *(row(n, f"wrong{n}") for n in range(3))))
        given = confirmation(clara, file_id)
        refused = page_of(clara.post(url(file_id, "confirm/"), given))
        assert "correct the wrong rows first" in refused
        given |= {"without_wrong": "on"}
        answers = [clara.post(url(file_id, "confirm/"), given) for _ in range(2)]
        assert {answer["Location"] for answer in answers} == {url(file_id, "rows/")}
        run_to_completion(ObjectId(file_id), at=utc_now())
        assert len(sent()) == 17
        (document,) = collection("broadcasts").find()
        assert document["client_id"] == registry.find_client("console")
        assert document["request"]["source"] == str(StaffUser.objects.get(username="clara").pk)
        assert audited().count("Sent to a file from the console.") == 1

    def test_over_a_thousand_messages_their_number_is_typed(
        self, clara: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("console.files.confirm.TYPED_FROM", 2)
        file_id = checked(clara, csv_of(*rows(3)))
        given = confirmation(clara, file_id)
        assert "Type 3." in page_of(clara.post(url(file_id, "confirm/"), given))
        assert "Type 3." in page_of(clara.post(url(file_id, "confirm/"), given | {"typed": "33"}))
        assert broadcasts.get(ObjectId(file_id)) is None
        answer = clara.post(url(file_id, "confirm/"), given | {"typed": " 3"})
        assert answer.status_code == 302

    @each_case(
        "given, field, value, words",
        [
            ({"pace": "7200"}, "spread_seconds", 7_200, "Spread over 120 min"),
            ({"pace": "local", "hour": "9"}, "local_hour", 9, "At 09:00 of each recipient"),
            ({"name": "Outage of June 3"}, "name", "Outage of June 3", "Outage of June 3"),
        ],
    )
    def test_pace_and_name_are_those_of_the_broadcast(
        self, clara: Client, given: dict[str, str], field: str, value: object, words: str
    ) -> None:
        file_id = checked(clara, csv_of(*rows(1)))
        clara.post(url(file_id, "confirm/"), confirmation(clara, file_id) | given)
        document = broadcasts.get(ObjectId(file_id))
        assert document is not None
        assert document.get(field) == value
        assert words in page_of(clara.get(f"/admin/notifications/broadcast/{file_id}/change/"))

    def test_what_was_seen_is_what_is_sent(self, clara: Client) -> None:
        file_id = checked(clara, csv_of(*rows(3)))
        given = confirmation(clara, file_id)
        stale = page_of(clara.post(url(file_id, "confirm/"), given | {"version": "9"}))
        assert "template has changed" in stale
        columns = columns_of(clara, file_id) | {"duplicates": "first"}
        clara.post(url(file_id, "columns/"), columns)
        run(file_id)
        again = page_of(clara.post(url(file_id, "confirm/"), given))
        assert "checked again meanwhile" in again
        assert broadcasts.get(ObjectId(file_id)) is None
        assert clara.post(url(file_id, "confirm/"), confirmation(clara, file_id)).status_code == 302

    @each_case(
        "at, words",
        [("", "Enter the time"), ("2020-01-01T09:00", "past"), ("soon", "Expected")],
    )
    def test_wrong_time_is_named(self, clara: Client, at: str, words: str) -> None:
        file_id = checked(clara, csv_of(*rows(1)))
        given = confirmation(clara, file_id) | {"when": "later", "at": at}
        assert words in page_of(clara.post(url(file_id, "confirm/"), given))
        assert broadcasts.get(ObjectId(file_id)) is None

    def test_counts_by_channel_are_shown(self, clara: Client) -> None:
        page = page_of(clara.get(url(checked(clara, csv_of(*rows(3))), "confirm/")))
        assert "<dt>By Email</dt><dd>3</dd>" in page
        assert "Send 3 messages" in page

    def test_parts_without_a_price_are_named(self, clara: Client, settings: Any) -> None:
        settings.SMS_CURRENCY, settings.SMS_PRICES = "EUR", {"PT": Decimal("0.036")}
        total: MessagesTotal = {"messages": 3, "units": {"PT": 2, "GB": 1}}
        document = stored(checked(clara, csv_of(*rows(3)))) | {"messages": {"sms": total}}
        ((_, priced),) = labels.messages_by_channel(document, is_priced=True)
        assert priced.startswith("3 with 3 parts, about 0.072 EUR without 1 part, price unknown")
        assert labels.messages_by_channel(document, is_priced=False) == [("By SMS", "3")]

    def test_type_that_is_turned_off_after_the_upload_is_not_sent(self, clara: Client) -> None:
        file_id = checked(clara, csv_of(*rows(1)))
        given = confirmation(clara, file_id)
        allow(TYPE, console_send=False)
        for answer in (
            clara.post(url(file_id, "confirm/"), given),
            clara.get(url(file_id, "preview/")),
        ):
            assert answer["Location"] == url(file_id, "check/")
        assert "be sent to a file from the console any more" in page_of(
            clara.get(url(file_id, "check/"))
        )
        assert broadcasts.get(ObjectId(file_id)) is None

    def test_neither_sender_nor_uploader_approves(self, clara: Client, otto: Client) -> None:
        allow(TYPE, approval={"above": 0, "by": "approvers"})
        file_id = checked(clara, csv_of(*rows(3)))
        assert "Ask for approval" in page_of(otto.get(url(file_id, "confirm/")))
        otto.post(url(file_id, "confirm/"), confirmation(otto, file_id))
        document = broadcasts.get(ObjectId(file_id))
        assert document is not None
        assert document["status"] == "awaiting_approval"
        people = StaffUser.objects.filter(username__in=("clara", "otto"))
        assert set(document["approval"]["authors"]) == {f"staff:{one.pk}" for one in people}
        assert "Awaits another person" in page_of(clara.get(url(file_id, "rows/")))
        assert sent() == []


class TestResults:
    def test_rows_have_their_status_and_the_reasons(
        self, clara: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("console.files.rows.SHOWN_ROWS", 2)
        file_id = checked(clara, csv_of(row(0), row(1, "wrong"), row(2)))
        given = confirmation(clara, file_id) | {"without_wrong": "on"}
        clara.post(url(file_id, "confirm/"), given)
        run_to_completion(ObjectId(file_id), at=utc_now())
        page = page_of(clara.get(url(file_id, "rows/")))
        assert "Queued" in page
        assert "email: Expected one address" in page
        assert "Audience processed: 2 created" in page
        live = {"HX-Request": "true"}
        part = page_of(clara.get(url(file_id, "rows/?was=completed"), headers=live))
        assert part.startswith('<div class="panel-body" id="state"')
        assert 'id="row-list" hx-swap-oob="true"' in part
        old = clara.get(url(file_id, "rows/?was=running"), headers=live)
        assert old["HX-Refresh"] == "true"
        second = page_of(clara.get(url(file_id, "rows/?from=4")))
        assert str(sent()[1]["_id"]) in second or str(sent()[0]["_id"]) in second
        text = clara.get(url(file_id, "results.csv")).getvalue().decode()
        assert text.startswith("\ufeffrow,notification_id,status,problem")
        assert len(text.splitlines()) == 4

    def test_page_of_rows_reads_no_earlier_part(
        self, clara: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each part is decrypted, and a file may have a hundred."""
        monkeypatch.setattr("console.files.rows.SHOWN_ROWS", 2)
        monkeypatch.setattr(parts, "ROWS_IN_PART", 3)
        lines = csv_of(*rows(30)).replace(b"user9@", b"\n\nuser9@")
        file_id = checked(clara, lines)
        read, found = parts.read_rows, list[int]()

        def read_rows(file_id: ObjectId, number: int) -> Any:
            found.append(number)
            return read(file_id, number)

        monkeypatch.setattr(parts, "read_rows", read_rows)
        assert "user13@" in page_of(clara.get(url(file_id, "preview/?row=17")))
        assert found.count(0) <= 3, "the first row, and the sample of the page"
        clara.post(url(file_id, "confirm/"), confirmation(clara, file_id))
        for start, part, row_shown in ((2, 0, 2), (17, 4, 17), (31, 9, 31), (33, 9, 33)):
            found.clear()
            page = page_of(clara.get(url(file_id, f"rows/?from={start}")))
            assert min(found) == part, start
            assert len(found) <= 2
            assert f'<td class="name">{row_shown}</td>' in page

    def test_good_row_that_was_not_sent_says_so_once_its_broadcast_is_over(
        self, clara: Client
    ) -> None:
        file_id = checked(clara, csv_of(*rows(2)))
        clara.post(url(file_id, "confirm/"), confirmation(clara, file_id))
        suppress("user1@example.com")
        assert "Not sent:" not in page_of(clara.get(url(file_id, "rows/")))
        run_to_completion(ObjectId(file_id), at=utc_now())
        assert page_of(clara.get(url(file_id, "rows/"))).count(NOT_SENT) == 1
        text = clara.get(url(file_id, "results.csv")).getvalue().decode()
        assert [NOT_SENT in line for line in text.splitlines()] == [False, False, True]

    def test_pages_of_a_sent_file_lead_to_its_rows(self, clara: Client) -> None:
        file_id = checked(clara, csv_of(*rows(1)))
        clara.post(url(file_id, "confirm/"), confirmation(clara, file_id))
        for page in ("", "columns/", "preview/", "confirm/"):
            assert clara.get(url(file_id, page))["Location"] == url(file_id, "rows/")
        change = f"/admin/notifications/broadcast/{file_id}/change/"
        assert url(file_id, "rows/") in page_of(clara.get(change))
        clara.post(url(file_id, "remove/"))
        assert stored(file_id)["status"] == "checked", "its broadcast isn't over"

    def test_confirmation_that_was_lost_can_be_repeated(self, clara: Client) -> None:
        file_id = checked(clara, csv_of(*rows(1)))
        repository.seal(ObjectId(file_id), check_number=1, now=utc_now())
        assert clara.get(url(file_id, "rows/"))["Location"] == url(file_id, "check/")
        assert clara.post(url(file_id, "confirm/"), confirmation(clara, file_id)).status_code == 302
        assert broadcasts.get(ObjectId(file_id)) is not None
