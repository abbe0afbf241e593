"""The floor: the least code that drains mail from MongoDB and survives a crash.

``python -m bench.floor MONGODB_URI MONGOD_PID SINK_URL MAIL COUNT WINDOW`` prints the wall time and
the CPU time as JSON. One process on pymongo and urllib3 claims a hundred mails or more with a
token, marks them as sending, posts them from WINDOW threads, logs the attempts, and settles them in
bulk. It has no
retries, limits, rendering, or circuit breakers, one channel, and one index.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parseaddr
from typing import Any
from uuid import uuid4

import msgspec
import urllib3
from bson import ObjectId
from pymongo import MongoClient, UpdateOne
from pymongo.write_concern import WriteConcern

from . import mail
from .processes import cpu_seconds

MIN_BATCH, WARM_UP = 100, 200
LEASE = timedelta(seconds=90)
Document = dict[str, Any]


class Floor:
    """A minimal sender of mail, with its collections and connections."""

    def __init__(self, *, uri: str, sink: str, window: int) -> None:
        database = MongoClient[Document](uri, maxPoolSize=window).get_default_database(
            write_concern=WriteConcern(w="majority", j=True)
        )
        self.mails, self.attempts = database["floor_mails"], database["floor_attempts"]
        self.mails.create_index([("due_at", 1)], sparse=True)
        self.attempts.create_index("mail_id")
        self.url = f"{sink}/v3/mail/send"
        self.http = urllib3.PoolManager(maxsize=window, block=True, retries=False)
        self.batch = max(window, MIN_BATCH)
        self.threads = ThreadPoolExecutor(window)

    def fill(self, count: int, ready: mail.RenderedMail) -> None:
        """Store due mails."""
        now = datetime.now(UTC)
        for start in range(0, count, mail.BATCH):
            self.mails.insert_many(
                {
                    "recipient": mail.address(number),
                    "content": {"subject": ready.subject, "text": ready.text, "html": ready.html},
                    "sender": ready.sender,
                    "status": "pending",
                    "attempt_count": 0,
                    "due_at": now,
                    "created_at": now,
                }
                for number in range(start, min(start + mail.BATCH, count))
            )

    def drain(self) -> None:
        """Send all due mails."""
        while claimed := self._claim():
            self._settle(claimed, list(self.threads.map(self._post, claimed)))

    def clear(self) -> None:
        """Delete all mails and attempts."""
        self.mails.delete_many({})
        self.attempts.delete_many({})

    def _claim(self) -> list[Document]:
        now, token = datetime.now(UTC), uuid4().hex
        due = (
            self.mails.find({"due_at": {"$lte": now}}, {"_id": 1}).sort("due_at").limit(self.batch)
        )
        ids = [document["_id"] for document in due]
        self.mails.update_many(
            {"_id": {"$in": ids}, "due_at": {"$lte": now}, "status": "pending"},
            {"$set": {"token": token, "due_at": now + LEASE}},
        )
        claimed = list(self.mails.find({"_id": {"$in": ids}, "token": token}))
        self.mails.update_many(
            {"_id": {"$in": ids}, "token": token},
            {"$set": {"status": "sending", "started_at": now}, "$inc": {"attempt_count": 1}},
        )
        return claimed

    def _post(self, document: Document) -> tuple[ObjectId, int, str | None]:
        answer = self.http.request(
            "POST",
            self.url,
            body=msgspec.json.encode(_body(document)),
            headers={"Authorization": "Bearer SG.floor", "Content-Type": "application/json"},
        )
        return document["_id"], answer.status, answer.headers.get("x-message-id")

    def _settle(
        self, claimed: list[Document], results: list[tuple[ObjectId, int, str | None]]
    ) -> None:
        now, token = datetime.now(UTC), claimed[0]["token"]
        attempts, updates = [], []
        for mail_id, status, message_id in results:
            attempts.append(
                {"mail_id": mail_id, "status": status, "message_id": message_id, "at": now}
            )
            found = {"status": "sent" if status == 202 else "failed", "message_id": message_id}
            changes = {"$set": found | {"sent_at": now}, "$unset": {"due_at": "", "token": ""}}
            mine = {"_id": mail_id, "token": token, "status": "sending"}
            updates.append(UpdateOne(mine, changes))
        self.attempts.insert_many(attempts, ordered=False)
        self.mails.bulk_write(updates, ordered=False)


def _body(document: Mapping[str, Any]) -> dict[str, Any]:
    name, sender = parseaddr(document["sender"])
    body = mail.sendgrid_body(sender, **document["content"], to=document["recipient"])
    body["from"]["name"] = name
    return body | {"custom_args": {"reference": str(document["_id"])}}


def main() -> None:
    """Send a few mails to warm up, then measure ``COUNT`` mails and print the cost."""
    uri, mongod_pid, sink, path, count, window = sys.argv[1:]
    ready, floor = mail.RenderedMail.load(path), Floor(uri=uri, sink=sink, window=int(window))
    floor.clear()
    floor.fill(WARM_UP, ready)
    floor.drain()
    floor.fill(int(count), ready)
    pids = (os.getpid(), int(mongod_pid))
    began, cpu = time.perf_counter(), cpu_seconds(*pids)
    floor.drain()
    cost = {"seconds": time.perf_counter() - began, "cpu_seconds": cpu_seconds(*pids) - cpu}
    print(json.dumps(cost))
    floor.clear()


if __name__ == "__main__":
    main()
