"""Liveness (``/healthz``) and readiness (``/readyz``) probes."""

import time
from datetime import datetime, timedelta
from typing import Any

import pymongo
import structlog
from django.http import HttpRequest, JsonResponse
from pymongo.errors import PyMongoError

from delivery.heartbeats import last_sweep, last_worker_heartbeat
from domain.time import utc_now
from monitoring import alerts
from notifyproject.db.collections import database
from notifyproject.platform import broker, clock_check

log = structlog.get_logger(__name__)
PROBE_TIMEOUT = 2.0  # Seconds that MongoDB or the broker may take to respond
OVERDUE_AFTER = timedelta(seconds=150)  # Age at which a sweep or a worker heartbeat is missing


def healthz(_request: HttpRequest) -> JsonResponse:
    """Return 200: the process is alive."""
    return JsonResponse({"status": "ok"})


def readyz(_request: HttpRequest) -> JsonResponse:
    """Return 200 if requests can be accepted, 503 if not, with the state of each dependency."""
    # Without the broker, a worker or a sweep the status is ``degraded``, with 200: requests are
    # accepted and delivered later, and a load balancer that rejected them would turn a delay into
    # an outage.
    parts = {"mongodb": _mongodb_check(), "broker": _broker_check()}
    if not parts["mongodb"]["ok"]:
        parts |= dict.fromkeys(("clock", "sweep", "worker"), _not_ok("not known"))
        return JsonResponse({"status": "not ready", **parts}, status=503)
    is_clock_wrong = clock_check.is_wrong()
    parts["clock"] = (
        _not_ok("over 2 s from MongoDB's: does NTP run?") if is_clock_wrong else {"ok": True}
    )
    parts["sweep"] = _heartbeat_check(
        last_sweep(), "no sweep for 150 s: check that beat and a worker are running"
    )
    if not parts["sweep"]["ok"]:
        _standstill_alert.evaluate()
    parts["worker"] = _heartbeat_check(
        last_worker_heartbeat(),
        "no worker heartbeat for 150 s: check that a worker and sweeps are running",
    )
    if is_clock_wrong:
        return JsonResponse({"status": "not ready", **parts}, status=503)
    is_healthy = all(part["ok"] for part in parts.values())
    return JsonResponse({"status": "ready" if is_healthy else "degraded", **parts})


def _mongodb_check() -> dict[str, Any]:
    try:
        with pymongo.timeout(PROBE_TIMEOUT):
            hello = database().client.admin.command("hello")
    except PyMongoError as error:
        return _not_ok(type(error).__name__)
    return {"ok": True} if hello.get("isWritablePrimary") else _not_ok("no primary")


def _broker_check() -> dict[str, Any]:
    error = broker.probe(timeout=PROBE_TIMEOUT)
    return {"ok": True} if error is None else _not_ok(error)


def _heartbeat_check(last_seen: datetime | None, reason: str) -> dict[str, Any]:
    """Return the result of a heartbeat's check, with ``reason`` if it is overdue."""
    if last_seen is None or utc_now() - last_seen > OVERDUE_AFTER:
        return _not_ok(reason)
    return {"ok": True, "at": last_seen.isoformat()}


def _not_ok(reason: str) -> dict[str, Any]:
    return {"ok": False, "reason": reason}


class _StandstillAlert:
    """Evaluates the standstill rules at most every 30 s, because beat may be down."""

    INTERVAL = 30.0

    def __init__(self) -> None:
        self._evaluated_at = float("-inf")

    def evaluate(self) -> None:
        """Evaluate the standstill rules if they are due."""
        if time.monotonic() - self._evaluated_at < self.INTERVAL:
            return
        self._evaluated_at = time.monotonic()
        try:
            alerts.evaluate_stalled(now=utc_now())
        except Exception:
            # Whatever it is says nothing about the requests, and the probe is answered.
            log.exception("alert_evaluation_failed")


_standstill_alert = _StandstillAlert()
