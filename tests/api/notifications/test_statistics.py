"""Statistics of notifications by status, type, channel, provider, and platform."""

from datetime import timedelta
from typing import Any

import pytest

from devices.models import Platform
from domain.channels import Channel
from domain.states import DeliveryStatus
from monitoring import statistics
from tests.support.clients.api import App, pointers
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.factories.push import RETRY, deliver, push
from tests.support.fakes.provider import (
    ScriptedProvider,
    accepted,
    by_recipient,
    invalid_token,
    provider_error,
)
from tests.support.tables import each_case

EMAIL, WHATSAPP, IN_APP = Channel.EMAIL, Channel.WHATSAPP, Channel.IN_APP
S = DeliveryStatus
HOUR = timedelta(hours=1)


def stats(app: App, **query: str) -> dict[str, Any]:
    answer = app.get("/notifications/stats", **query)
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    return body


def groups(app: App, **query: str) -> dict[str, tuple[int, int, int, float]]:
    """Return total, sent, failed and average attempts of each group."""
    return {
        result["value"]: (
            result["total"],
            result["sent"],
            result["failed"],
            result["average_attempts"],
        )
        for result in stats(app, **query)["results"]
    }


@pytest.fixture
def past(app: App, other_app: App) -> None:
    """Store sent, failed, waiting, and in-app notifications, and one of another client."""
    mine: dict[str, Any] = {"client_id": app.id}
    factories.settled(S.SENT, **mine)
    factories.settled(S.FAILED, type="new_sale", user_id="eve", **mine)
    factories.settled(S.SENT, channels=(EMAIL, WHATSAPP), created_at=NOON - HOUR, **mine)
    factories.accepted(channels=(IN_APP,), type="new_sale", **mine)
    factories.settled(S.SENT, client_id=other_app.id)


GROUPS = {
    "status": {
        "sent": (1, 1, 0, 1.0),
        "failed": (1, 0, 1, 1.0),
        "queued": (1, 1, 0, 1.0),
        "delivered": (1, 1, 0, 0.0),
    },
    "type": {"payment_confirmed": (2, 2, 0, 1.0), "new_sale": (2, 1, 1, 0.5)},
    # These count deliveries.
    "channel": {"email": (3, 2, 1, 1.0), "whatsapp": (1, 0, 0, 0.0), "in_app": (1, 1, 0, 0.0)},
    "provider": {"sendgrid": (3, 2, 1, 1.0), "none": (1, 0, 0, 0.0), "inbox": (1, 1, 0, 0.0)},
}


@pytest.mark.usefixtures("past")
def test_statistics_by_each_property(
    app: App, other_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    for by, expected in GROUPS.items():
        assert groups(app, by=by) == expected
        body = stats(app, by=by)
        assert (body["by"], body["counted"], body["complete"]) == (by, 4, True)
        totals = [result["total"] for result in body["results"]]
        assert totals == sorted(totals, reverse=True)
    assert stats(app) == stats(app, by="status")
    assert groups(other_app) == {"sent": (1, 1, 0, 1.0)}, "other clients aren't counted"
    monkeypatch.setattr(statistics, "CAP", 3)
    body = stats(app, by="channel")
    assert (body["counted"], body["complete"]) == (3, False)
    assert "whatsapp" not in groups(app, by="channel"), "the newest are counted"


@pytest.mark.usefixtures("past")
def test_statistics_of_one_recipient_or_period(app: App, other_app: App) -> None:
    assert groups(app, user_id="eve") == {"failed": (1, 0, 1, 1.0)}
    assert groups(app, user_id="nobody") == groups(other_app, user_id="eve") == {}
    at = NOON.isoformat().replace("+00:00", "Z")
    assert groups(app, created_before=at) == {"queued": (1, 1, 0, 1.0)}
    assert stats(app, created_after=at)["counted"] == 3


def test_statistics_without_notifications_are_empty(app: App) -> None:
    assert stats(app) == {"by": "status", "results": [], "counted": 0, "complete": True}


@each_case(
    "query, status",
    [
        ("by=priority", 422),
        ("by=", 422),
        ("created_after=yesterday", 422),
        ("created_before=2026-12-01T09:00", 422),
        ("user_id=%00", 422),
        ("user_id[$ne]=x", 400),
        ("type=x", 400),
        ("limit=5", 400),
        ("by=type&by=status", 400),
    ],
)
def test_invalid_query_is_refused(app: App, query: str, status: int) -> None:
    answer = app.http.get(
        f"/api/v1/notifications/stats?{query}", headers={"Authorization": f"Bearer {app.key}"}
    )
    assert answer.status_code == status
    if status == 422:
        assert list(pointers(answer)) == [f"/{query.partition('=')[0]}"]


@pytest.mark.usefixtures("broker")
class TestStatisticsByPlatform:
    def test_devices_are_counted_once_with_their_attempts(
        self, app: App, fcm: ScriptedProvider
    ) -> None:
        factories.device("phone", platform=Platform.IOS)
        factories.device("watch", platform=Platform.IOS)
        factories.device("tablet")
        factories.device("browser", platform=Platform.WEB)
        fcm.behave = by_recipient({"browser": invalid_token, "tablet": provider_error})
        notification_id = push(client_id=app.id)
        deliver(notification_id)
        fcm.always(accepted)
        deliver(notification_id, at=RETRY)
        push(client_id=app.id)  # Not attempted
        factories.settled(S.SENT, client_id=app.id)
        assert groups(app, by="platform") == {
            "ios": (2, 2, 0, 1.0),
            "android": (1, 1, 0, 2.0),
            "web": (1, 0, 1, 1.0),
        }
        body = stats(app, by="platform")
        assert (body["counted"], body["complete"]) == (2, True)

    def test_other_clients_and_recipients_are_not_counted(
        self, app: App, other_app: App, fcm: ScriptedProvider
    ) -> None:
        factories.device("phone")
        deliver(push(client_id=other_app.id), push(client_id=app.id))
        assert groups(app, by="platform", user_id="ada") == {"android": (1, 1, 0, 1.0)}
        assert groups(app, by="platform", user_id="eve") == {}

    def test_newest_are_counted_up_to_the_cap(
        self, app: App, fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(statistics, "PLATFORM_CAP", 2)
        factories.device("phone")
        deliver(*(push(client_id=app.id) for _ in range(3)))
        body = stats(app, by="platform")
        assert (body["counted"], body["complete"]) == (2, False)
