"""Collecting a run's three records when it is over."""

from pathlib import Path
from typing import Any

from pymongo.database import Database

from sandbox.log import REQUESTS_FILE, read_records

from .evidence import Attempt, Evidence, Request, StoredNotification
from .stand import Installation


def collect_evidence(installation: Installation) -> Evidence:
    """End the service, so that nothing changes any more, and return everything about the run."""
    installation.kill_all()
    return Evidence(
        answers=tuple(installation.client.answers),
        requests=tuple(requests(installation.folder / "sandbox")),
        steps=tuple(installation.watcher.finish()),
        stored=tuple(_stored(installation.database)),
        attempts=tuple(_attempts(installation.database)),
        kills=tuple(installation.kills),
    )


def requests(folder: Path) -> list[Request]:
    """Return what the provider got, from its durable log, the oldest first."""
    # The service's own modules want its settings, which stand only when the servers do.
    from notifications.store import AttemptReference

    path = folder / REQUESTS_FILE
    return [
        Request(
            notification_id=str(one.notification_id),
            channel=one.channel.value,
            attempt=one.attempt_number,
            device_id=one.device_id,
            at=record.time,
            accepted=record.accepted,
        )
        for record in (read_records(path) if path.exists() else ())
        if record.is_message
        # A push names its attempt in several places of one request.
        for one in dict.fromkeys(map(AttemptReference.parse, record.references))
        if one is not None
    ]


def _stored(database: Database[dict[str, Any]]) -> list[StoredNotification]:
    fields = {"idempotency_key": 1, "delivery.channel": 1, "delivery.status": 1}
    return [
        StoredNotification(
            notification_id=str(document["_id"]),
            key=document.get("idempotency_key"),
            deliveries={one["channel"]: one["status"] for one in document["delivery"]},
        )
        for document in database["notifications"].find({}, fields)
    ]


def _attempts(database: Database[dict[str, Any]]) -> list[Attempt]:
    return [
        Attempt(
            notification_id=str(record["notification_id"]),
            channel=record["channel"],
            number=record["attempt_number"],
            device_id=record.get("device_id"),
            status=record["status"],
        )
        for record in database["delivery_attempts"].find()
    ]
