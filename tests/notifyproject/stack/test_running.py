"""What the local stack sets for its programs, and in which order it starts."""

import io
from pathlib import Path
from typing import Any

import pytest

from api.inbox import cors
from notifyproject.settings.environment import read
from notifyproject.stack import running, servers
from notifyproject.stack.running import Addresses, own_settings
from notifyproject.supervision import forking, loading
from notifyproject.supervision.supervisor import Supervisor
from tests.support.tables import each_case

ADDRESSES = Addresses(port=8000)
KEYS = {"SECRET_KEY": "k" * 64, "INBOX_SIGNING_KEY": "i" * 64, "FIELD_ENCRYPTION_KEYS": "local:e"}
OWN_PAGE = "http://127.0.0.1:8000"


@each_case(
    "given, expected",
    [
        ("", OWN_PAGE),
        ("http://127.0.0.1:3000", f"{OWN_PAGE},http://127.0.0.1:3000"),
        (
            " http://localhost:3000 , https://app.example.com,",
            f"{OWN_PAGE},http://localhost:3000,https://app.example.com",
        ),
        (OWN_PAGE, OWN_PAGE),
    ],
)
def test_origins_of_pages_are_added_to_the_stacks_own(given: str, expected: str) -> None:
    found = own_settings(ADDRESSES, keys=KEYS, environ={"INBOX_ORIGINS": given})
    assert found["INBOX_ORIGINS"] == expected


def test_page_of_a_given_origin_may_read_inboxes(settings: Any) -> None:
    environ = {"INBOX_ORIGINS": "http://127.0.0.1:3000"}
    found = own_settings(ADDRESSES, keys=KEYS, environ=environ)
    settings.INBOX_ORIGINS = read({"INBOX_ORIGINS": found["INBOX_ORIGINS"]}).INBOX_ORIGINS
    for origin in ("http://127.0.0.1:3000", OWN_PAGE):
        headers = cors.response_headers("GET", {"Origin": origin})
        assert headers["Access-Control-Allow-Origin"] == origin


@each_case(
    "name, own",
    [
        ("PUBLIC_URL", OWN_PAGE),
        ("INBOX_STREAM_URL", "http://127.0.0.1:8002"),
        ("SANDBOX_URL", "http://127.0.0.1:8001"),
        *KEYS.items(),
    ],
)
def test_variable_of_the_environment_replaces_the_stacks_own(name: str, own: str) -> None:
    """Such as the address of a tunnel, so that a provider's webhooks and links reach it."""
    assert own_settings(ADDRESSES, keys=KEYS, environ={})[name] == own
    found = own_settings(ADDRESSES, keys=KEYS, environ={name: "https://tunnel.example.com"})
    assert found[name] == "https://tunnel.example.com"


def test_static_files_are_there_when_the_web_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The web looks for them once. At the first start there are none before."""
    ran: list[str] = []

    def run_once(_supervisor: Any, programs: Any) -> None:
        ran.extend(program.name for program in programs)

    def load(_modules: Any) -> None:
        raise running.StackError(f"loaded after {ran}")

    monkeypatch.setattr(running, "STACK_FILE", tmp_path / "stack.json")
    monkeypatch.setattr(running, "_lock", io.BytesIO)
    monkeypatch.setattr(running, "_start_servers", lambda *_: ([], {}))
    monkeypatch.setattr(Supervisor, "run_once", run_once)
    monkeypatch.setattr(loading, "load", load)
    monkeypatch.setattr(forking, "IS_SAFE", True)
    # Another test may listen on one of the two ports after it.
    monkeypatch.setattr(servers, "is_free", lambda _port: True)
    with pytest.raises(running.StackError, match=r"loaded after \['collectstatic'\]"):
        running.up(port=8000, host=servers.HOST, with_examples=False)
