"""Where beat and workers stand still, whoever is asked for its health raises the alarm."""

import pytest
from django.test import Client
from pymongo.errors import AutoReconnect

from api import health
from monitoring import alert_rules, alerts
from notifyproject.db.collections import collection

pytestmark = pytest.mark.usefixtures("db", "broker")


@pytest.fixture(autouse=True)
def _the_shipped_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    collection("alert_rules").delete_many({})
    alert_rules.add_missing_rules()
    monkeypatch.setattr(health, "_standstill_alert", health._StandstillAlert())


def open_kinds() -> list[str]:
    return [one["kind"] for one in collection("incidents").find({"is_open": True})]


def test_a_missing_sweep_opens_an_incident() -> None:
    assert Client().get("/readyz").json()["status"] == "degraded"
    assert open_kinds() == ["sweep_overdue"]


def test_it_is_raised_twice_a_minute_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    monkeypatch.setattr(alerts, "evaluate_stalled", lambda **_: looks.append(_))
    for _ in range(5):
        Client().get("/readyz")
    assert len(looks) == 1


def test_it_never_keeps_the_answer_from_being_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> int:
        raise AutoReconnect("gone")

    monkeypatch.setattr(alerts, "evaluate_stalled", broken)
    assert Client().get("/readyz").status_code == 200
