"""Liveness and readiness, and the alert when nothing is processed."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pymongo import MongoClient
from pymongo.errors import AutoReconnect

from api import health
from delivery import heartbeats, sweeper
from domain.time import utc_now
from monitoring import alert_rules, alerts
from notifyproject.db.collections import collection
from notifyproject.platform import clock_check

pytestmark = pytest.mark.usefixtures("db", "broker")


def test_healthz_answers_ok(db: None) -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probe_is_answered_on_any_host_name_without_tls(path: str, settings: Any) -> None:
    settings.ALLOWED_HOSTS, settings.SECURE_SSL_REDIRECT = ["notify.example.com"], True
    client = Client(headers={"host": "10.0.0.7:8000"})
    assert client.get(path).status_code == 200
    assert client.get("/api/v1/notifications").status_code == 400


def test_readyz_is_ready_with_store_broker_worker_and_sweep(db: None, broker: Any) -> None:
    sweeper.sweep(now=utc_now())
    heartbeats.record_worker_heartbeat(now=utc_now())
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")


def test_readyz_is_degraded_without_a_recent_sweep(db: None, broker: Any) -> None:
    sweeper.sweep(now=utc_now())
    collection("heartbeats").update_one(
        {"_id": "sweep"}, {"$set": {"at": utc_now() - timedelta(minutes=4)}}
    )
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["sweep"]["ok"] is False
    assert answer.json()["mongodb"]["ok"] is True


def test_readyz_is_degraded_without_a_worker_heartbeat(db: None, broker: Any) -> None:
    sweeper.sweep(now=utc_now())
    heartbeats.record_worker_heartbeat(now=utc_now() - timedelta(minutes=4))
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert "no worker" in answer.json()["worker"]["reason"]


def test_readyz_is_degraded_without_broker(db: None, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["broker"]["ok"] is False


def test_readyz_is_not_ready_with_a_wrong_clock(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_check, "is_wrong", lambda: True)
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "not ready")
    assert answer.json()["clock"]["ok"] is False
    assert answer.json()["mongodb"]["ok"] is True


def test_readyz_is_not_ready_without_store(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere: MongoClient[Any] = MongoClient("mongodb://127.0.0.1:1/x", serverSelectionTimeoutMS=100)
    monkeypatch.setattr(health, "database", lambda: nowhere["x"])
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "not ready")
    assert answer.json()["mongodb"]["ok"] is False
    nowhere.close()


@pytest.fixture
def _the_shipped_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    collection("alert_rules").delete_many({})
    alert_rules.add_missing_rules()
    monkeypatch.setattr(health, "_standstill_alert", health._StandstillAlert())


@pytest.mark.usefixtures("_the_shipped_rules")
def test_missing_sweep_opens_an_incident() -> None:
    assert Client().get("/readyz").json()["status"] == "degraded"
    (incident,) = collection("incidents").find({"is_open": True})
    assert incident["kind"] == "sweep_overdue"


@pytest.mark.usefixtures("_the_shipped_rules")
def test_alert_is_evaluated_at_most_twice_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    monkeypatch.setattr(alerts, "evaluate_stalled", lambda **_: looks.append(_))
    for _ in range(5):
        Client().get("/readyz")
    assert len(looks) == 1


@pytest.mark.usefixtures("_the_shipped_rules")
@pytest.mark.parametrize("error", [AutoReconnect("gone"), ValueError("an unknown kind")])
def test_failed_alert_does_not_fail_readyz(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: object) -> int:
        raise error

    monkeypatch.setattr(alerts, "evaluate_stalled", broken)
    assert Client().get("/readyz").status_code == 200
