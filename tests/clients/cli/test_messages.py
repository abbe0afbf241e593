"""``notify preview``, ``send``, and ``tail`` at the service."""

import json
import re
import webbrowser
from pathlib import Path
from typing import Any

import httpx
import pytest
from notifyproject_client.cli import messages

from access.models import Scope
from notifications.models import Notification
from tests.clients.cli.test_command import Notify, notify, parcel
from tests.support.clients.api import App, new_app
from tests.support.tables import each_case

__all__ = ["notify", "parcel"]


@pytest.fixture
def tester(tmp_path: Path, parcel: Notify) -> Notify:
    """The command with a test key."""
    return Notify(tmp_path, new_app("tester", *Scope, is_test=True))


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "data.json"
    path.write_text('{"parcel": "4711"}')
    return str(path)


def test_preview_shows_what_would_be_sent(parcel: Notify, data: str) -> None:
    assert parcel("preview", "parcel_lost", "--channel", "email") == 0
    assert parcel.out == "== email\nSubject: Lost: 77\nWe are sorry.\n\n"
    words = ("preview", "parcel_lost", "--channel", "email", "--data", data)
    assert parcel(*words, "--language", "pt") == 0
    assert "Subject: Perdida: 4711\nLamentamos.\n" in parcel.out
    assert parcel(*words, "--json") == 0
    (channel,) = json.loads(parcel.out)["channels"]
    assert (channel["channel"], channel["subject"]) == ("email", "Lost: 4711")
    assert not Notification.objects.exists()


def test_preview_opens_the_email_in_the_browser(
    parcel: Notify, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert (parcel("preview", "parcel_lost", "--open"), parcel.out) == (0, "")
    (url,) = opened
    path = Path(parcel.err.strip())
    assert url == path.as_uri()
    assert "We are sorry." in path.read_text()
    path.unlink()


def test_wrong_data_is_named_by_its_place(parcel: Notify, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text("{}")
    for words in (("preview",), ("send", "--to", "ada@example.com")):
        assert parcel(*words, "parcel_lost", "--data", str(path)) == 1
        assert parcel.err.startswith("data/parcel: ")
    path.write_text("{")
    assert parcel("preview", "parcel_lost", "--data", str(path)) == 2
    assert parcel("preview", "nope") == 2
    assert "404" in parcel.err
    assert parcel("preview", "parcel_lost", "--channel", "fax") == 2
    assert "There is no channel fax, but email" in parcel.err


@each_case(
    "to, recipient",
    [
        ("ada@example.com", {"recipient": {"email": "ada@example.com"}}),
        ("+351912345678", {"recipient": {"phone": "+351912345678"}}),
        ("ada", {"user_id": "ada"}),
    ],
)
def test_recipient_is_an_address_or_a_user(to: str, recipient: dict[str, Any]) -> None:
    assert messages._recipient(to) == recipient


def test_test_message_has_the_example_data(tester: Notify, app: App) -> None:
    assert tester("send", "parcel_lost", "--to", "ada@example.com", "--test") == 0
    sent = Notification.objects.get()
    assert (sent.data, sent.is_test) == ({"parcel": "77"}, True)
    assert f" {sent.pk} parcel_lost queued email\n" in tester.out
    assert "ada@example.com" not in tester.out


def test_test_message_needs_a_test_key(parcel: Notify) -> None:
    assert parcel("send", "parcel_lost", "--to", "ada@example.com", "--test") == 2
    assert "ntf_test_" in parcel.err
    assert not Notification.objects.exists()


def test_message_is_sent_with_its_data(parcel: Notify, data: str) -> None:
    words = ("send", "parcel_lost", "--to", "ada@example.com", "--channel", "email")
    assert parcel(*words, "--json") == 1  # Examples aren't sent to people
    assert parcel(*words, "--data", data, "--json") == 0
    sent = Notification.objects.get()
    shown = json.loads(parcel.out)
    assert (shown["id"], shown["type"], sent.data) == (
        *(str(sent.pk), "parcel_lost"),
        {"parcel": "4711"},
    )


def test_message_whose_response_is_lost_is_repeated_by_its_key(parcel: Notify, data: str) -> None:
    working = parcel.transport

    def lost(request: httpx.Request) -> httpx.Response:
        working.handle_request(request).read()
        raise httpx.ReadError("cut", request=request)

    words = ("send", "parcel_lost", "--to", "ada@example.com", "--data", data)
    parcel.transport = httpx.MockTransport(lost)
    assert parcel(*words) == 2
    (key,) = re.findall(r"--key (\S+):", parcel.err)
    parcel.transport = working
    assert parcel(*words, "--key", key) == 0
    assert Notification.objects.count() == 1


def test_tail_shows_each_message_and_what_becomes_of_it(
    parcel: Notify, data: str, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.notify()
    words = ("send", "parcel_lost", "--to", "ada@example.com", "--data", data, "--json")
    ids = []
    for _ in range(3):
        assert parcel(*words) == 0
        ids.append(json.loads(parcel.out)["id"])
    assert parcel("tail", "--once", "--last", "2", "--type", "parcel_lost") == 0
    assert [line.split()[1] for line in parcel.out.splitlines()] == ids[1:]
    rounds = iter([lambda: app.post(f"/notifications/{ids[0]}/cancel"), None])

    def sleep(_seconds: float) -> None:
        if (act := next(rounds)) is None:
            raise KeyboardInterrupt
        act()

    monkeypatch.setattr(messages, "sleep", sleep)
    assert parcel("tail", "--type", "parcel_lost", "--json") == 0
    shown = [json.loads(line) for line in parcel.out.splitlines()]
    assert [(each["id"], each["status"]) for each in shown] == [
        *((id_, "queued") for id_ in ids),
        (ids[0], "cancelled"),
    ]


def test_key_without_the_scope_is_told_so(parcel: Notify, tmp_path: Path) -> None:
    weak = Notify(tmp_path, new_app("weak", Scope.TEMPLATES_WRITE))
    assert weak("tail", "--once") == 2
    assert "notifications:read" in weak.err
