"""The Python client's methods, at the service."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from notifyproject_client import AsyncNotifier, NotificationRejectedError, Notifier
from notifyproject_client.rest.api.notifications import list_notifications

from tests.support.clients.api import App, request

pytestmark = pytest.mark.usefixtures("shipped_types")


def test_each_method_gets_the_view_that_it_promises(app: App, live_server: Any) -> None:
    with Notifier(live_server.url, key=app.key) as notifier:
        sent = notifier.notify(
            "payment_confirmed",
            user_id="ada",
            channels=["push"],
            data=request()["data"],
        )
        assert [(warning.channel, warning.code) for warning in sent.warnings] == [
            ("push", "no_address")
        ]
        many = notifier.send_many([request(), request(type="nosuch"), request(external_id="o-2")])
        assert [bool(result.error) for result in many.results] == [False, True, False]
        assert (many.accepted, many.rejected) == (2, 1)
        started = notifier.broadcast(
            "marketing", {"user_ids": ["ada"]}, content={"subject": "Spring", "body": "It is."}
        )
        assert app.get(f"/broadcasts/{started.id}").status_code == 200
        token = notifier.inbox_token("ada")
        assert token.to_dict()["user_id"] == "ada"


def test_readme_begins_with_lines_that_send(app: App, live_server: Any) -> None:
    text = Path(settings.BASE_DIR, "clients", "python", "README.md").read_text()
    code = text.split("```")[1].removeprefix("python\n")
    assert len(code.strip().splitlines()) <= 5 + code.count("\n\n")
    names: dict[str, Any] = {"key": app.key}
    exec(code.replace("http://127.0.0.1:8000", live_server.url), names)
    assert app.get(f"/notifications/{names['sent'].id}").json()["type"] == "payment_confirmed"


def test_a_list_is_read_to_its_end(app: App, live_server: Any) -> None:
    ids = {app.notify(external_id=f"o-{number}").json()["id"] for number in range(3)}
    with Notifier(live_server.url, key=app.key) as notifier:
        found = notifier.iterate(list_notifications.sync, limit=1)
        assert {notification.id for notification in found} == ids


def test_asynchronous_notifier_sends(app: App, live_server: Any) -> None:
    async def send() -> str:
        async with AsyncNotifier(live_server.url, key=app.key) as notifier:
            sent = await notifier.notify(
                "payment_confirmed", email="ada@example.com", data=request()["data"]
            )
            return sent.id

    assert app.get(f"/notifications/{asyncio.run(send())}").status_code == 200


def test_wrong_key_is_an_error_everywhere(live_server: Any, db: None) -> None:
    with Notifier(live_server.url, key="ntf_wrong_wrong") as notifier:
        for ask in (
            lambda: notifier.notify("mfa_code", user_id="ada"),
            lambda: notifier.inbox_token("ada"),
            lambda: notifier.send_many([{"type": "mfa_code"}]),
            lambda: notifier.broadcast("marketing", {"all": True}),
        ):
            with pytest.raises(NotificationRejectedError, match="unauthenticated"):
                ask()
