"""Files of recipients: upload, columns, check, downloads, and the broadcast of one."""

import csv
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress as suppress_loss
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain, islice
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.limits import Limit, Overflow
from domain.tables.reading import read_table
from domain.tables.table import Table
from domain.time import utc_now
from notifications.broadcasts import fan_out
from notifications.broadcasts import repository as broadcasts
from notifications.broadcasts import runner as broadcast_runner
from notifications.catalog import limits, texts
from notifications.files import parts, repository, runner
from notifications.files.reading import ParserBusyError, ParserLostError
from notifications.files.repository import LEASES
from notifications.files.rows import LENGTHS
from notifications.store import acceptance, limit_uses, removal
from notifications.store.limit_uses import UseRequest
from notifyproject.db.collections import collection
from notifyproject.platform import crash_points, process
from privacy import erasure
from tests.support.clients.api import Answer, App, new_app, pointers
from tests.support.factories.broadcasts import run_to_completion
from tests.support.factories.files import (
    HEADER,
    TYPE,
    check,
    checked,
    create,
    csv_of,
    put_chunk,
    read,
    row,
    rows,
    run,
    upload,
)
from tests.support.factories.notifications import suppress
from tests.support.tables import each_case


@pytest.fixture(autouse=True)
def parts_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ROWS_IN_PART", 3)


def send(app: App, file_id: str, *, key: str | None = None, **fields: Any) -> Answer:
    audience = {"file": file_id} | fields.pop("audience", {})
    headers = {"Idempotency-Key": key} if key else {}
    return app.post("/broadcasts", {"type": TYPE, "audience": audience, **fields}, headers=headers)


def run_broadcast(answer: Answer) -> None:
    assert answer.status_code == 202
    run_to_completion(ObjectId(answer.json()["id"]), at=utc_now())


def sent_to(answer: Answer) -> list[str]:
    """Return the addresses that a broadcast notified, with duplicates."""
    found = collection("notifications").find({"broadcast_id": ObjectId(answer.json()["id"])})
    return sorted(document["recipient"]["email"] for document in found)


def define_text_type(app: App) -> None:
    """Define a type that goes by SMS, and has one variable."""
    fields = {
        "name": "Parcel",
        "category": "transactional",
        "channels": ["sms"],
        "example_data": {"text": "On its way"},
    }
    path = "/types/parcel_text"
    parts = {"default": {"subject": "Parcel", "body": "{{ text }}"}}
    assert app.put(path, fields).status_code == 201
    assert app.post(f"{path}/templates", {"parts": parts}).status_code == 201
    assert app.post(f"{path}/templates/versions/1/publish", {}).status_code == 200


def lines(answer: Answer) -> list[list[str]]:
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.reader(answer.getvalue().decode("utf-8-sig").splitlines()))


def wrong_rows(app: App, file_id: str) -> list[list[str]]:
    return lines(app.get(f"/files/{file_id}/wrong_rows"))


class TestUpload:
    def test_file_is_uploaded_in_chunks_in_any_order(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        content = csv_of(*rows(4))
        monkeypatch.setattr(repository, "CHUNK_BYTES", len(content) // 3 + 1)
        answer = create(app, content)
        assert answer.status_code == 202
        body = answer.json()
        assert answer.headers["Location"] == f"/api/v1/files/{body['id']}"
        assert (body["status"], body["name"]) == ("uploading", "customers.csv")
        assert body["missing_chunks"] == [0, 1, 2]
        put_chunk(app, body["id"], 2, content)
        put_chunk(app, body["id"], 0, content)
        again = put_chunk(app, body["id"], 0, content)
        assert again.json()["missing_chunks"] == [1]
        refused = check(app, body["id"])
        assert (refused.status_code, refused.json()["code"]) == (409, "invalid_state")
        assert refused.json()["detail"] == "The upload lacks chunks: 1."
        put_chunk(app, body["id"], 1, content)
        check(app, body["id"])
        run(body["id"])
        assert read(app, body["id"])["good"] == 4

    def test_repeated_request_begins_one_upload(self, app: App) -> None:
        content = csv_of(*rows(1))
        first, second = (create(app, content, key="k") for _ in range(2))
        assert first.json()["id"] == second.json()["id"]
        assert second.headers["Idempotent-Replayed"] == "true"
        assert create(app, content + b"x", key="k").json()["code"] == "idempotency_key_reused"

    @each_case(
        "fields, pointer, code",
        [
            ({"size": 0}, "/size", "out_of_range"),
            ({"size": 20 * 2**20 + 1}, "/size", "out_of_range"),
            ({"type": "unknown"}, "/type", "unknown_type"),
            ({"type": "mfa_code"}, "/type", "critical_type"),
            ({"name": "a\nb"}, "/name", "control_characters"),
            ({"name": ""}, "/name", "out_of_range"),
        ],
    )
    def test_upload_is_refused(
        self, app: App, fields: dict[str, Any], pointer: str, code: str
    ) -> None:
        answer = create(app, b"x", **fields)
        assert answer.status_code == 422
        assert pointers(answer)[pointer] == code

    def test_chunk_of_the_wrong_size_or_number_is_refused(self, app: App) -> None:
        content = csv_of(*rows(1))
        file_id = create(app, content).json()["id"]
        assert pointers(put_chunk(app, file_id, 0, content[:-1])) == {"/content": "wrong_length"}
        assert app.put(f"/files/{file_id}/chunks/1", {"content": ""}).status_code == 404
        assert app.put(f"/files/{file_id}/chunks/0", {"content": "%"}).status_code == 422

    def test_content_is_stored_encrypted_and_its_name_too(self, app: App) -> None:
        checked(app, csv_of(row(1, "ada.lovelace@example.com")))
        stored = [
            repr(document)
            for name in ("audience_files", "audience_file_parts")
            for document in collection(name).find()
        ]
        assert stored
        for text in stored:
            assert "lovelace" not in text
            assert "customers.csv" not in text
            assert "Sunrise" not in text

    def test_files_of_another_client_are_unknown(self, app: App) -> None:
        file_id = checked(app, csv_of(*rows(1)))["id"]
        other = new_app("other")
        assert other.get("/files").json()["results"] == []
        for path in ("", "/wrong_rows", "/results"):
            assert other.get(f"/files/{file_id}{path}").status_code == 404
        assert other.delete(f"/files/{file_id}").status_code == 404
        assert check(other, file_id).status_code == 404
        assert pointers(send(other, file_id)) == {"/audience/file": "unknown_file"}

    def test_list_has_the_newest_first_without_contents(self, app: App) -> None:
        first, second = (upload(app, csv_of(*rows(1))) for _ in range(2))
        results = app.get("/files").json()["results"]
        assert [each["id"] for each in results] == [second, first]
        assert {each["name"] for each in results} == {None}


class TestColumns:
    def test_columns_are_guessed_by_name_and_content(self, app: App) -> None:
        header = ("Contact", "Order ID", "VIDEO_TITLE", "amount", "Language", "note")
        found = checked(app, csv_of(("a@b.co", "1", "Sunrise", "2.50", "pt", "x"), header=header))
        assert [each["target"] for each in found["columns"]] == [
            "email",
            "data.order_id",
            "data.video_title",
            "data.amount",
            "locale",
            None,
        ]
        assert (found["status"], found["good"]) == ("checked", 1)

    def test_missing_columns_are_named_in_one_sentence_and_can_be_given(self, app: App) -> None:
        header = ("email", "Number of order", "Film")
        content = csv_of(("a@b.co", "1", "Sunrise"), header=header)
        found = checked(app, content)
        assert (found["status"], found["rows"]) == ("unmapped", 1)
        (problem,) = found["column_problems"]
        assert problem["code"] == "missing_column"
        assert "order_id, video_title" in problem["detail"]
        twice = pointers(check(app, found["id"], columns=["email", "email", None]))
        assert twice["/columns/0"] == "duplicate"
        assert pointers(check(app, found["id"], columns=["email"])) == {"/columns": "wrong_length"}
        refused = pointers(check(app, found["id"], columns=["name", None, "shoe"]))
        assert refused == {"/columns/2": "unknown_target"}
        refused = pointers(check(app, found["id"], columns=["name", None, None]))
        assert set(refused) == {"/columns"}

    def test_columns_are_remembered_for_the_type_and_header(self, app: App) -> None:
        header = ("who", "n", "film", "price")
        content = csv_of(("a@b.co", "1", "Sunrise", "2.50"), header=header)
        targets = ["email", "data.order_id", "data.video_title", "data.amount"]
        assert checked(app, content, columns=targets)["status"] == "checked"
        again = checked(app, csv_of(("c@d.co", "2", "Sunset", "3.50"), header=header))
        assert [each["target"] for each in again["columns"]] == targets
        assert again["status"] == "checked"


class TestCheck:
    def test_wrong_rows_are_grouped_by_sentence_with_their_numbers(self, app: App) -> None:
        suppress("user1@example.com")
        found = checked(
            app,
            csv_of(
                row(0),
                row(1),
                row(2, "no-address"),
                row(3, "none"),
                (*row(4), "one too many"),
                row(0),
                ("", "6", "Sunrise", "6.50"),
            ),
        )
        assert (found["rows"], found["checked_rows"]) == (7, 7)
        assert (found["good"], found["wrong"], found["skipped"]) == (1, 4, 2)
        wrong = {(each["code"], each["target"]): each["rows"] for each in found["wrong_rows"]}
        assert wrong == {
            ("invalid_email", "email"): [4, 5],
            ("too_many_cells", None): [6],
            ("duplicate", "email"): [7],
        }
        skipped = {each["code"]: each["rows"] for each in found["skipped_rows"]}
        assert skipped == {"suppressed": [3], "no_address": [8]}

    def test_nothing_is_sent_by_a_check(self, app: App) -> None:
        checked(app, csv_of(*rows(4)))
        assert collection("notifications").count_documents({}) == 0

    @each_case(
        "duplicates, good, wrong, skipped",
        [("refuse", 2, 2, 0), ("first", 2, 0, 2), ("last", 2, 0, 2)],
    )
    def test_of_equal_recipients_one_row_is_sent(
        self, app: App, duplicates: str, good: int, wrong: int, skipped: int
    ) -> None:
        same = [("Ada@example.com", "1"), ("ada@EXAMPLE.com", "2"), ("bob@example.com", "3")]
        given = [(email, order, "Sunrise", "1.50") for email, order in [*same, same[0]]]
        found = checked(app, csv_of(*given), duplicates=duplicates)
        assert (found["good"], found["wrong"], found["skipped"]) == (good, wrong, skipped)
        answer = send(app, found["id"], audience={"skip_wrong_rows": True})
        run_broadcast(answer)
        stored = collection("notifications").find({"broadcast_id": ObjectId(found["id"])})
        orders = Counter(str(document["data"]["order_id"]) for document in stored)
        assert orders == Counter(["1", "3"])

    def test_rows_are_of_one_person_if_anything_that_names_them_is_the_same(self, app: App) -> None:
        header = ("user_id", "phone", *HEADER)
        content = csv_of(
            ("ada", "+351912345678", *row(1)),
            ("bob", "", *row(1)),
            ("cyd", "+351 912 345 678", *row(3)),
            ("ada", "", *row(4)),
            ("bob", "", *row(5)),
            header=header,
        )
        found = checked(app, content)
        named = {each["target"]: each["rows"] for each in found["wrong_rows"]}
        assert named == {"email": [3], "phone": [4], "user_id": [5]}
        assert found["good"] == 2

    def test_rows_over_a_limit_are_named_and_still_good(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        weekly = Limit(
            name="weekly",
            channels=frozenset({Channel.EMAIL}),
            maximum=1,
            period=timedelta(days=7),
            overflow=Overflow.LATER,
        )
        monkeypatch.setattr(limits, "active_limits", lambda: (weekly,))
        use = UseRequest(
            limits=[weekly],
            person=limits.person_of(
                user_id=None, channel=Channel.EMAIL, address="user1@example.com"
            ),
            user_id=None,
            delivery_id=f"{ObjectId()}.email",
            due_at=utc_now(),
        )
        limit_uses.reserve_uses([use], now=utc_now())
        found = checked(app, csv_of(*rows(4)))
        assert (found["good"], found["wrong"], found["skipped"]) == (4, 0, 0)
        (doubt,) = found["doubtful_rows"]
        assert (doubt["code"], doubt["count"], doubt["rows"]) == ("over_limit", 1, [3])
        assert doubt["detail"] == "The limit weekly would hold the message now."
        assert [(each["channel"], each["messages"]) for each in found["messages"]] == [("email", 4)]

    def test_text_messages_have_parts_a_price_and_a_country(
        self, app: App, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.SMS_COUNTRIES, settings.SMS_CURRENCY = ("PT", "GB"), "EUR"
        settings.SMS_PRICES = {"PT": Decimal("0.036")}
        monkeypatch.setattr(texts, "is_configured", lambda _: True)
        define_text_type(app)
        header = ("phone", "text")
        content = csv_of(
            ("+351912345678", "short"),
            ("+351912345679", "a" * 200),
            ("+34612345678", "to Spain"),
            ("+447700900123", "to Britain, without a price"),
            ("+351912345677", "a" * 500),
            header=header,
        )
        found = checked(app, content, type_slug="parcel_text")
        assert found["messages"] == [
            {"channel": "sms", "messages": 4, "parts": 8, "price": "0.252 EUR", "unpriced": 1}
        ]
        (skipped,) = found["skipped_rows"]
        assert (skipped["code"], skipped["rows"]) == ("destination_disabled", [4])
        (doubt,) = found["doubtful_rows"]
        assert (doubt["code"], doubt["rows"]) == ("too_large", [6])

    def test_text_that_the_broadcast_gives_has_no_parts_before(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(texts, "is_configured", lambda _: True)
        fields = {"name": "News", "category": "transactional", "channels": ["sms"]}
        assert app.put("/types/news_text", fields).status_code == 201
        content = csv_of(("+351912345678",), header=("phone",))
        found = checked(app, content, type_slug="news_text")
        assert found["messages"] == [
            {"channel": "sms", "messages": 1, "parts": None, "price": None, "unpriced": None}
        ]

    def test_rows_of_a_reminder_wait_for_its_event(self, app: App) -> None:
        header = ("email", "contest_name")
        content = csv_of(("ada@example.com", "Round 900"), header=header)
        found = checked(app, content, type_slug="contest_reminder")
        assert (found["good"], found["wrong"]) == (1, 0)
        (doubt,) = found["doubtful_rows"]
        assert (doubt["code"], doubt["count"]) == ("event_required", 1)
        assert "event_at" in doubt["detail"]

    def test_phones_without_their_sign_are_read_for_a_country(self, app: App) -> None:
        header = ("phone", *HEADER[1:])
        content = csv_of(("912345678", "1", "Sunrise", "1"), header=header)
        found = checked(app, content)
        (problem,) = found["wrong_rows"]
        assert problem["code"] == "invalid_phone"
        assert "name the `country`" in problem["detail"]
        assert pointers(check(app, found["id"], country="XX")) == {"/country": "unknown_country"}
        assert check(app, found["id"], country="PT").status_code == 202
        run(found["id"])
        again = read(app, found["id"])
        assert (again["wrong"], again["wrong_rows"]) == (0, [])

    def test_unreadable_file_says_why_and_keeps_nothing(self, app: App) -> None:
        found = checked(app, b'email\n"open')
        assert (found["status"], found["failure_code"]) == ("refused", "open_quote")
        assert "row 2" in found["failure_reason"]
        assert collection("audience_file_parts").count_documents({}) == 0
        assert check(app, found["id"]).status_code == 409
        assert checked(app, b"email\n")["failure_code"] == "no_rows"

    def test_wrong_rows_are_downloaded_with_a_problem_and_upload_again(self, app: App) -> None:
        formula = "=HYPERLINK(0)"
        found = checked(app, csv_of(row(0), ("nobody", "+1", formula, "-5")))
        header, wrong = wrong_rows(app, found["id"])
        assert header == [*HEADER, "problem"]
        assert wrong[:4] == ["nobody", "'+1", f"'{formula}", "'-5"]
        assert wrong[4].startswith("email: Expected one address")
        corrected = csv_of(["ada@example.com", *wrong[1:]], header=header)
        again = checked(app, corrected)
        assert (again["good"], again["wrong"]) == (1, 0)
        run_broadcast(send(app, again["id"]))
        (stored,) = collection("notifications").find()
        assert stored["data"]["video_title"] == formula
        assert "problem" not in stored["data"]


class TestBroadcast:
    def test_each_good_row_gets_one_notification_with_its_data(self, app: App) -> None:
        found = checked(app, csv_of(*rows(7)))
        answer = send(app, found["id"])
        assert answer.json()["audience"] == {"file": found["id"]}
        assert answer.json()["audience_size"] == 7
        run_broadcast(answer)
        assert sent_to(answer) == sorted(f"user{number}@example.com" for number in range(7))
        stored = collection("notifications").find({})
        for document in stored:
            number = document["recipient"]["email"].removeprefix("user").partition("@")[0]
            assert document["data"]["amount"] == f"{number}.50"
        done = app.get(f"/broadcasts/{found['id']}").json()
        assert (done["status"], done["accepted"]) == ("completed", 7)

    def test_results_name_each_row_s_notification(self, app: App) -> None:
        found = checked(app, csv_of(*rows(4), row(9, "wrong")))
        run_broadcast(send(app, found["id"], audience={"skip_wrong_rows": True}))
        header, *results = lines(app.get(f"/files/{found['id']}/results"))
        assert header == ["row", "notification_id", "status", "problem"]
        assert [line[0] for line in results] == ["2", "3", "4", "5", "6"]
        assert results[4][1:3] == ["", ""]
        for line in results[:4]:
            notification = app.get(f"/notifications/{line[1]}").json()
            assert notification["status"] == line[2]

    def test_file_that_is_sent_meanwhile_is_not_removed(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = checked(app, csv_of(*rows(2)))
        answers = []
        find = broadcasts.get

        def find_and_send(broadcast_id: ObjectId) -> Any:
            unsent = find(broadcast_id)
            monkeypatch.undo()
            answers.append(send(app, found["id"]))
            return unsent

        monkeypatch.setattr(broadcasts, "get", find_and_send)
        refused = app.delete(f"/files/{found['id']}")
        assert (refused.status_code, refused.json()["code"]) == (409, "invalid_state")
        (answer,) = answers
        run_broadcast(answer)
        assert len(sent_to(answer)) == 2

    def test_file_with_wrong_rows_is_refused_unless_they_are_skipped(self, app: App) -> None:
        found = checked(app, csv_of(*rows(3), row(9, "wrong")))
        refused = send(app, found["id"])
        assert pointers(refused) == {"/audience/file": "wrong_rows"}
        answer = send(app, found["id"], audience={"skip_wrong_rows": True})
        run_broadcast(answer)
        assert len(sent_to(answer)) == 3

    def test_file_is_sent_once(self, app: App) -> None:
        found = checked(app, csv_of(*rows(4)))
        first = send(app, found["id"], key="k")
        assert send(app, found["id"], key="k").json()["id"] == first.json()["id"]
        assert pointers(send(app, found["id"], key="other")) == {"/audience/file": "used"}
        run_broadcast(first)
        run_to_completion(ObjectId(found["id"]), at=utc_now())
        assert len(sent_to(first)) == 4
        assert check(app, found["id"]).status_code == 409, "what is sent doesn't change"
        assert pointers(send(app, found["id"], key="other")) == {"/audience/file": "used"}
        assert send(app, found["id"], key="k").headers["Idempotent-Replayed"] == "true"

    def test_row_that_its_type_does_not_take_any_more_stops_no_other(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = checked(app, csv_of(*rows(7)))
        answer = send(app, found["id"])
        monkeypatch.setitem(LENGTHS, "email", len("user5@example.com") - 1)
        run_broadcast(answer)
        shown = app.get(f"/broadcasts/{found['id']}").json()
        assert (shown["status"], shown["accepted"]) == ("completed", 0)
        assert shown["rejected"][0]["count"] == 7

    def test_same_content_that_was_sent_before_is_named(self, app: App) -> None:
        content = csv_of(*rows(2))
        first = checked(app, content)
        assert first["sent_before"] == []
        send(app, first["id"])
        again = checked(app, content)
        assert [each["broadcast_id"] for each in again["sent_before"]] == [first["id"]]
        assert checked(app, csv_of(*rows(3)))["sent_before"] == []
        other = new_app("other")
        assert checked(other, content)["sent_before"] == []

    def test_file_that_is_not_ready_is_refused(self, app: App) -> None:
        unchecked = upload(app, csv_of(*rows(1)))
        assert pointers(send(app, unchecked)) == {"/audience/file": "unchecked_file"}
        found = checked(app, csv_of(*rows(1)))
        late = (utc_now() + timedelta(days=6, hours=1)).isoformat()
        for fields, problems in [
            ({"type": "marketing", "content": {"body": "x"}}, {"/type": "conflict"}),
            ({"data": {"amount": "1"}}, {"/data": "conflict"}),
            ({"scheduled_at": late}, {"/scheduled_at": "too_late"}),
            ({"audience": {"all": True}}, {"/audience": "conflict"}),
        ]:
            assert pointers(send(app, found["id"], **fields)) == problems
        assert pointers(send(app, "x" * 24)) == {"/audience/file": "unknown_file"}
        nothing = checked(app, csv_of(row(1, "wrong")))
        refused = send(app, nothing["id"], audience={"skip_wrong_rows": True})
        assert pointers(refused) == {"/audience/file": "no_good_rows"}

    def test_preview_prepares_rows_and_sends_nothing(self, app: App) -> None:
        found = checked(app, csv_of(*rows(2)))
        body = {"type": TYPE, "audience": {"file": found["id"]}}
        preview = app.post("/broadcasts/preview", body).json()
        assert (preview["audience_size"], preview["accepted"]) == (2, 2)
        assert send(app, found["id"]).status_code == 202

    def test_pause_and_cancel_are_those_of_any_broadcast(self, app: App) -> None:
        found = checked(app, csv_of(*rows(7)))
        answer = send(app, found["id"])
        broadcast_id = ObjectId(answer.json()["id"])
        broadcast_runner.run_page(broadcast_id, clock=utc_now)
        assert app.post(f"/broadcasts/{broadcast_id}/pause").json()["status"] == "paused"
        assert run_to_completion(broadcast_id, at=utc_now()) == 0
        assert len(sent_to(answer)) == 3
        app.post(f"/broadcasts/{broadcast_id}/resume")
        run_to_completion(broadcast_id, at=utc_now())
        assert len(sent_to(answer)) == 7

    def test_opt_out_after_the_check_counts(self, app: App) -> None:
        found = checked(app, csv_of(*rows(3)))
        suppress("user1@example.com")
        answer = send(app, found["id"])
        run_broadcast(answer)
        assert len(sent_to(answer)) == 2
        shown = app.get(f"/broadcasts/{found['id']}").json()
        assert shown["skipped"][0] == {"code": "suppressed", "count": 1, "examples": ["3"]}

    def test_removed_file_fails_its_broadcast(self, app: App) -> None:
        found = checked(app, csv_of(*rows(4)))
        answer = send(app, found["id"])
        assert app.delete(f"/files/{found['id']}").status_code == 409, "its broadcast runs"
        parts.delete_all(ObjectId(found["id"]))
        run_broadcast(answer)
        failed = app.get(f"/broadcasts/{found['id']}").json()
        assert (failed["status"], failed["failure_code"]) == ("failed", "file_removed")
        removed = app.delete(f"/files/{found['id']}").json()
        assert (removed["status"], removed["name"]) == ("removed", None)


class Lost(BaseException):
    """Stands for the end of the process."""


def run_or_lose(file_id: str, *, at: datetime, boundary: str | None) -> None:
    """Run a step of a file, by a worker that is lost at a boundary, if one is given."""

    def reach(reached: str) -> None:
        if reached == boundary:
            raise Lost

    with pytest.MonkeyPatch.context() as patch, suppress_loss(Lost):
        patch.setattr(crash_points, "reach", reach)
        runner.run(ObjectId(file_id), clock=lambda: at)


def lose_parser(*_: Any, **__: Any) -> Any:
    """Stand for a table whose parser is killed."""
    raise ParserLostError("killed by SIGKILL")


def another_parses(*_: Any, **__: Any) -> Any:
    """Stand for a table whose parser waits for another one."""
    raise ParserBusyError


@contextmanager
def lose_parser_after_a_part(content: bytes, **_: Any) -> Iterator[Table]:
    """Stand for a table whose parser is killed after some rows."""
    table = read_table(content)
    yield replace(table, rows=chain(islice(table.rows, 4), (lose_parser() for _ in (1,))))


def stop_worker(*_: Any, **__: Any) -> None:
    """Stop the worker in the middle of a step."""
    process.request_shutdown()


class TestLostWorkers:
    @each_case(
        "boundary", [("file_leased",), ("file_stored",), ("file_checked",), ("file_advanced",)]
    )
    def test_check_continues_where_it_was_lost(self, app: App, boundary: str) -> None:
        content = csv_of(*rows(7), row(9, "wrong"))
        file_id = upload(app, content)
        check(app, file_id)
        now = utc_now()
        for turn in range(20):
            lost_at = boundary if turn % 2 == 0 else None
            run_or_lose(file_id, at=now + turn * LEASES.length, boundary=lost_at)
        found = read(app, file_id)
        assert (found["good"], found["wrong"], found["skipped"]) == (7, 1, 0)
        assert [each["rows"] for each in found["wrong_rows"]] == [[9]]
        answer = send(app, file_id, audience={"skip_wrong_rows": True})
        run_broadcast(answer)
        assert len(sent_to(answer)) == 7

    def test_slow_worker_of_an_earlier_check_changes_nothing(self, app: App) -> None:
        found = checked(app, csv_of(("ada@example.com", "1", "Sunrise", "1.50")))
        file_id = ObjectId(found["id"])
        check(app, found["id"], duplicates="first")
        slow = repository.acquire_lease(file_id, worker="slow", now=utc_now())
        check(app, found["id"], duplicates="last")
        run(found["id"])
        assert slow is not None
        with pytest.raises(runner.LeaseLostError):
            runner._begin(slow, utc_now)
        again = read(app, found["id"])
        assert (again["status"], again["duplicates"], again["good"]) == ("checked", "last", 1)

    def test_lost_parser_is_as_a_lost_worker(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file_id = upload(app, csv_of(*rows(2)))
        check(app, file_id)
        now = utc_now()
        with monkeypatch.context() as patch:
            patch.setattr(runner, "open_table", lose_parser)
            assert runner.run(ObjectId(file_id), clock=lambda: now)
            assert read(app, file_id)["status"] == "reading"
        assert not runner.run(ObjectId(file_id), clock=lambda: now), "its lease goes on"
        run_or_lose(file_id, at=now + LEASES.length, boundary=None)
        assert read(app, file_id)["status"] == "checking"

    def test_workbook_waits_for_another_one_without_losing_a_try(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file_id = upload(app, csv_of(*rows(2)))
        check(app, file_id)
        at = utc_now()
        with monkeypatch.context() as patch:
            patch.setattr(runner, "open_table", another_parses)
            for _ in range(2 * LEASES.max_claims):
                assert runner.run(ObjectId(file_id), clock=lambda now=at: now)
                assert not runner.run(ObjectId(file_id), clock=lambda now=at: now)
                at += runner.BUSY_DELAY
        run_or_lose(file_id, at=at, boundary=None)
        assert read(app, file_id)["status"] == "checking"

    def test_parser_that_is_always_lost_ends_a_file(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file_id = upload(app, csv_of(*rows(7)))
        check(app, file_id)
        monkeypatch.setattr(runner, "open_table", lose_parser_after_a_part)
        at = utc_now()
        for turn in range(LEASES.max_claims + 1):
            runner.run(ObjectId(file_id), clock=lambda turn=turn: at + 2 * turn * LEASES.length)
        assert read(app, file_id)["failure_code"] == "stuck"

    def test_worker_that_is_stopped_gives_a_file_back(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file_id = upload(app, csv_of(*rows(7)))
        check(app, file_id)
        monkeypatch.setattr(parts, "write_rows", stop_worker)
        now = utc_now()
        try:
            runner.run(ObjectId(file_id), clock=lambda: now)
        finally:
            process.clear_shutdown()
        monkeypatch.undo()
        run(file_id)
        assert read(app, file_id)["good"] == 7

    def test_three_lost_workers_end_a_file(self, app: App) -> None:
        file_id = upload(app, csv_of(*rows(1)))
        check(app, file_id)
        at = utc_now()
        for turn in range(LEASES.max_claims):
            moment = at + turn * LEASES.length
            assert repository.acquire_lease(ObjectId(file_id), worker="w", now=moment)
        runner.run(ObjectId(file_id), clock=lambda: at + LEASES.max_claims * LEASES.length)
        found = read(app, file_id)
        assert (found["status"], found["failure_code"]) == ("refused", "stuck")


class TestErasure:
    def test_rows_are_erased_before_the_notifications(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app.put("/recipients/ada", {"email": "user1@example.com"})
        found = checked(app, csv_of(*rows(2)))
        answer = send(app, found["id"])
        erase = removal.erase

        def send_and_erase(*given: Any, **options: Any) -> int:
            run_broadcast(answer)
            return erase(*given, **options)

        app.notify(user_id="ada")
        monkeypatch.setattr(removal, "erase", send_and_erase)
        erasure.erase("ada", now=utc_now())
        assert sent_to(answer) == ["user0@example.com"]

    @each_case("module, step", [(fan_out, "prepare_page"), (acceptance, "accept")])
    def test_page_that_was_read_before_an_erasure_leaves_nobody(
        self, app: App, monkeypatch: pytest.MonkeyPatch, module: Any, step: str
    ) -> None:
        """The person is erased while a worker has the page in memory: before its last look at the
        rows, or at the worst moment, between that and the insert.
        """
        app.put("/recipients/ada", {"email": "user1@example.com"})
        found = checked(app, csv_of(*rows(3)))
        answer = send(app, found["id"])
        original, erased = getattr(module, step), list[bool]()

        def erase_first(*given: Any, **options: Any) -> Any:
            if not erased:
                erased.append(erasure.erase("ada", now=utc_now()).is_complete)
            return original(*given, **options)

        with monkeypatch.context() as patch:
            patch.setattr(module, step, erase_first)
            run_broadcast(answer)
        assert erased == [False], "the page is on its way"
        assert erasure.erase("ada", now=utc_now()).is_complete
        query = {"broadcast_id": ObjectId(answer.json()["id"])}
        kept = [each["recipient"].get("email") for each in collection("notifications").find(query)]
        assert set(kept) - {None} == {"user0@example.com", "user2@example.com"}

    def test_erasure_removes_a_person_s_rows(self, app: App) -> None:
        header = ("user_id", *HEADER)
        app.put("/recipients/ada", {"email": "ada@example.com"})
        content = csv_of(
            ("ada", "other@example.com", *row(1)[1:]),
            ("", "Ada@example.com", *row(2)[1:]),
            ("bob", *row(3)),
            header=header,
        )
        found = checked(app, content)
        assert found["good"] == 3
        assert erasure.erase("ada", now=utc_now()).is_complete
        kept = parts.read_rows(ObjectId(found["id"]), 0)
        assert [each.cells[0] for each in kept.rows] == ["bob"]
        answer = send(app, found["id"])
        run_broadcast(answer)
        assert len(sent_to(answer)) == 1

    def test_erasure_is_complete_once_no_file_is_being_read(self, app: App) -> None:
        file_id = upload(app, csv_of(*rows(2)))
        check(app, file_id)
        app.put("/recipients/ada", {"email": "user1@example.com"})
        assert not erasure.erase("ada", now=utc_now()).is_complete
        run(file_id)
        assert erasure.erase("ada", now=utc_now()).is_complete
        kept = parts.read_rows(ObjectId(file_id), 0)
        assert [each.cells[0] for each in kept.rows] == ["user0@example.com"]
