"""The reading flows of an app without an in-app channel: read one, read all, unread, delete."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.clients.api import App, when
from tests.support.clients.inbox import InboxUser

pytestmark = pytest.mark.usefixtures("worker")
USER = "ada"
HISTORY = f"/recipients/{USER}/notifications"


def send(app: App, channel: str, number: int) -> str:
    """Send Ada a reminder of a contest on one channel. Return its ID once it was sent."""
    data = {
        "contest_name": f"Codeforces Round #90{number}",
        "platform": "codeforces",
        "start_time": "2026-02-20 14:35",
        "hours_until_start": 2,
    }
    answer = app.notify(
        type="contest_reminder",
        user_id=USER,
        recipient={"email": "ada@example.com"} if channel == "email" else ...,
        channels=[channel],
        data=data,
        entity_id=f"contest-{number}",
    )
    assert answer.status_code == 202, answer.json()
    return str(when(app, answer, "sent", "delivered")["id"])


@pytest.fixture(params=["email", "push"])
def channel(request: pytest.FixtureRequest, app: App) -> str:
    """Return the only channel of the notifications. Registers a device of Ada for push."""
    device = {"user_id": USER, "device_token": "adas-phone", "platform": "android"}
    assert app.put("/devices", device).status_code in (200, 201)
    return str(request.param)


@pytest.fixture
def listed(app: App) -> Callable[..., list[str]]:
    def ids(**query: Any) -> list[str]:
        return [result["id"] for result in app.get(HISTORY, **query).json()["results"]]

    return ids


def test_reading_flows_work_without_an_in_app_channel(
    app: App, channel: str, listed: Callable[..., list[str]]
) -> None:
    first, second, third = (send(app, channel, number) for number in range(3))
    assert listed() == listed(unread="true") == [third, second, first]

    read = app.post(f"/notifications/{first}/read").json()
    assert (read["is_read"], read["read_at"] is not None) == (True, True)
    assert read["delivery"][0]["status"] in ("sent", "delivered")
    assert listed(unread="true") == [third, second]

    ada = InboxUser(app=app)
    assert ada.post(f"/{second}/read").json()["is_read"] is True
    assert app.get(f"/notifications/{second}").json()["is_read"] is True
    assert listed(unread="true") == [third]

    assert app.post(f"/notifications/{first}/unread").json()["read_at"] is None
    assert listed(unread="true") == [third, first]
    assert app.post(f"{HISTORY}/read-all").json() == {"updated": 2}
    assert listed(unread="true") == []
    assert len(listed()) == 3


def test_soft_delete_works_without_an_in_app_channel(
    app: App, channel: str, listed: Callable[..., list[str]]
) -> None:
    first, second = (send(app, channel, number) for number in range(2))
    assert app.delete(f"/notifications/{first}").status_code == 204
    assert listed() == listed(unread="true") == [second]
    assert listed(is_active="false") == [first]
    assert app.get(f"/notifications/{first}").json()["is_active"] is False
    assert app.post(f"{HISTORY}/read-all").json() == {"updated": 1}
    assert app.get(f"/notifications/{first}").json()["is_read"] is False
