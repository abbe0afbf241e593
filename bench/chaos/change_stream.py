"""A recorder of each change of a delivery, from MongoDB's change stream with post-images."""

import threading
from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from .analysis import REMOVED
from .evidence import Step

MARKER_COLLECTION = "chaos_marks"
"""A write to this collection ends the recording."""
WATCHED = "notifications"
END_SECONDS = 120.0
FIELDS = (
    "operationType",
    "ns",
    "wallTime",
    "documentKey",
    "fullDocument.delivery.channel",
    "fullDocument.delivery.status",
    "fullDocument.delivery.attempt_count",
    "fullDocument.delivery.claim.worker",
)
PIPELINE: list[Mapping[str, Any]] = [
    {"$match": {"ns.coll": {"$in": [WATCHED, MARKER_COLLECTION]}}},
    {"$project": dict.fromkeys(FIELDS, 1)},
]


class StepRecorder:
    """Records the steps of all deliveries from :meth:`start` to :meth:`finish`."""

    def __init__(self, uri: str) -> None:
        self._client: MongoClient[dict[str, Any]] = MongoClient(uri, tz_aware=True, tzinfo=UTC)
        self._database = self._client.get_default_database()
        self._steps: list[Step] = []
        self._channels: dict[str, tuple[str, ...]] = {}
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._is_open, self._is_over = threading.Event(), threading.Event()
        self._problem: PyMongoError | None = None

    def start(self) -> None:
        """Enable post-images and start to record."""
        images = {"enabled": True}
        self._database.command("collMod", WATCHED, changeStreamPreAndPostImages=images)
        self._thread.start()
        self._is_open.wait(END_SECONDS)

    def finish(self) -> list[Step]:
        """Stop recording and return all steps. Raises PyMongoError or TimeoutError."""
        self._database[MARKER_COLLECTION].insert_one({})
        if not self._is_over.wait(END_SECONDS):
            raise TimeoutError("the change stream did not come to its end")
        if self._problem is not None:
            raise self._problem
        self._client.close()
        return self._steps

    def _follow(self) -> None:
        try:
            with self._database.watch(PIPELINE, full_document="whenAvailable") as stream:
                self._is_open.set()
                for event in stream:
                    if event["ns"]["coll"] == MARKER_COLLECTION:
                        break
                    self._steps += self._parse_event(event)
        except PyMongoError as error:
            self._problem = error
        finally:
            self._is_open.set()
            self._is_over.set()

    def _parse_event(self, event: Mapping[str, Any]) -> Iterator[Step]:
        """Yield a step for each delivery of a written notification, including removed ones."""
        notification_id = str(event["documentKey"]["_id"])
        deliveries = (event.get("fullDocument") or {}).get("delivery", [])
        channels = tuple(delivery["channel"] for delivery in deliveries)
        removed = [
            {"channel": channel, "status": REMOVED, "attempt_count": 0}
            for channel in self._channels.get(notification_id, ())
            if channel not in channels
        ]
        self._channels[notification_id] = channels
        for delivery in (*removed, *deliveries):
            yield Step(
                notification_id=notification_id,
                channel=delivery["channel"],
                status=delivery["status"],
                attempt=delivery["attempt_count"],
                worker=(delivery.get("claim") or {}).get("worker"),
                at=event["wallTime"],
            )
