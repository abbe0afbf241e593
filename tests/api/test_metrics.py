"""/metrics: exported samples, and access."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from access.clients import registry as access_registry
from delivery import provider_pauses
from delivery.circuit_breaker import CircuitReporter
from domain.states import DeliveryStatus
from domain.time import utc_now
from monitoring import prometheus, rollup
from notifications.store import digests
from notifyproject.db.collections import collection
from notifyproject.platform import valkey
from providers import registry
from scripts import grafana
from tests.support.factories import notifications as factories
from tests.support.factories.digests import opened
from tests.support.factories.push import deliver, push
from tests.support.fakes.provider import ScriptedProvider
from tests.support.source import ROOT
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")


@pytest.fixture(autouse=True)
def _read_anew(pauses_anew: None) -> Iterator[None]:
    prometheus.clear()
    yield
    prometheus.clear()


def samples() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    prometheus.clear()
    text = Client().get("/metrics").content.decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(name: str, **labels: str) -> float | None:
    return samples().get((name, frozenset(labels.items())))


def test_deliveries_of_the_last_hour_are_exported() -> None:
    now = utc_now()
    for status in (DeliveryStatus.SENT, DeliveryStatus.FAILED):
        factories.settled(status, at=now, created_at=now)
    rollup.run(now=now + timedelta(seconds=1))
    of = {"channel": "email", "type": "payment_confirmed"}
    assert value("notify_deliveries_last_hour", event="sent", **of) == 1
    assert value("notify_deliveries_last_hour", event="failed", **of) == 1
    name = "notify_due_to_sent_seconds_last_hour"
    assert value(f"{name}_bucket", channel="email", le="0.1") == 1
    assert value(f"{name}_count", channel="email") == 1


def test_deliveries_are_exported_by_provider_and_client() -> None:
    now = utc_now()
    shop = access_registry.create_client(name="shop", scopes=[], now=now)
    factories.settled(DeliveryStatus.SENT, at=now, created_at=now, client_id=shop)
    factories.accepted(created_at=now)
    rollup.run(now=now + timedelta(seconds=1))
    of = {"channel": "email", "event": "sent"}
    assert value("notify_provider_deliveries_last_hour", **of, provider="sendgrid") == 1
    assert value("notify_client_deliveries_last_hour", **of, client="shop") == 1
    accepted = {"channel": "email", "event": "accepted"}
    assert value("notify_client_deliveries_last_hour", **accepted, client="other") == 1


def test_attempts_at_devices_are_exported_by_platform(fcm: ScriptedProvider) -> None:
    now = utc_now()
    factories.device("phone", at=now)
    deliver(push(created_at=now, send_at=now), at=now)
    rollup.run(now=now + timedelta(seconds=1))
    assert value("notify_device_messages_last_hour", event="sent", platform="android") == 1


def test_backlog_and_health_are_exported() -> None:
    now = utc_now()
    factories.accepted(created_at=now - timedelta(minutes=10))
    collection("heartbeats").insert_one({"_id": "sweep", "at": now - timedelta(minutes=1)})
    CircuitReporter().trip(registry.get_provider("sendgrid").account, now=now, retry_after=600)
    provider_pauses.pause("sendgrid", by="maria", reason="", now=now)
    assert value("notify_due", priority="normal") == 1
    assert value("notify_oldest_due_seconds", priority="normal") == pytest.approx(600, abs=30)
    assert value("notify_queue_messages", priority="normal", channel="email") == 0
    assert value("notify_circuit_open", provider="sendgrid") == 1
    assert value("notify_provider_paused", provider="sendgrid") == 1
    assert value("notify_last_seen_seconds", what="sweep") == pytest.approx(60, abs=30)
    assert value("notify_incidents_open", kind="failures") == 0


def test_digests_are_exported() -> None:
    now = utc_now()
    opened(at=now)
    late = opened(at=now - timedelta(minutes=40))["_id"]
    overdue = value("notify_digest_overdue_seconds")
    assert overdue == pytest.approx(595, abs=30)
    assert value("notify_digests_open") == 2
    sealed = {"status": "sealed", "outcome": "sent", "count": 3}
    collection("digests").update_one({"_id": late}, {"$set": sealed})
    digests.finish([(late, None)], now=now)
    assert value("notify_digest_overdue_seconds") == 0
    assert value("notify_digests_closed_last_hour", outcome="sent") == 1
    assert value("notify_digest_members_last_hour", outcome="sent") == 3
    assert value("notify_digests_closed_last_hour", outcome="cancelled") == 0


def test_metrics_without_valkey_omit_queues() -> None:
    valkey._health.record_failure()
    found = {name for name, _ in samples()}
    assert "notify_due" in found
    assert "notify_queue_messages" not in found


def test_types_over_the_limit_are_grouped_as_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MAX_TYPES", 1)
    now = utc_now()
    for kind in ("alert", "new_sale", "order_shipped"):
        factories.accepted(created_at=now, type=kind)
    rollup.run(now=now + timedelta(seconds=1))
    labels = [dict(own) for name, own in samples() if name == "notify_deliveries_last_hour"]
    assert len({label["type"] for label in labels}) == 2
    assert "other" in {label["type"] for label in labels}


def test_metrics_are_cached() -> None:
    first = Client().get("/metrics").content
    factories.accepted(created_at=utc_now() - timedelta(minutes=1))
    assert Client().get("/metrics").content == first


@each_case(
    "token, request_, status",
    [
        ("", {}, 200),
        ("", {"REMOTE_ADDR": "::1"}, 200),
        ("", {"REMOTE_ADDR": "10.0.0.9"}, 403),
        ("", {"REMOTE_ADDR": ""}, 403),
        ("", {"HTTP_X_FORWARDED_FOR": "127.0.0.1"}, 403),
        ("s3cret", {}, 403),
        ("s3cret", {"HTTP_AUTHORIZATION": "Bearer other"}, 403),
        ("s3cret", {"HTTP_AUTHORIZATION": "Bearer s3cret", "REMOTE_ADDR": "10.0.0.9"}, 200),
    ],
)
def test_metrics_need_the_token_or_localhost(
    token: str, request_: dict[str, str], status: int, settings: Any
) -> None:
    settings.METRICS_TOKEN = token
    assert Client().get("/metrics", **request_).status_code == status


def test_metrics_are_read_only() -> None:
    assert Client().post("/metrics").status_code == 405


def test_dashboards_and_alerts_are_written_from_their_source() -> None:
    for file, text in grafana.files().items():
        assert (grafana.FOLDER / file).read_text(encoding="utf-8") == text, "run make grafana"


def test_every_exported_metric_is_on_a_dashboard() -> None:
    described = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    shown = "".join(grafana.files().values())
    names = set(re.findall(r"`(notify_\w+)`", described))
    assert {name for name in names if name not in shown} == set()
