"""Files of recipients, uploaded and checked as a client does."""

import base64
import csv
import io
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from bson import ObjectId

from domain.time import utc_now
from notifications.files import repository, runner
from tests.support.clients.api import Answer, App

TYPE = "payment_confirmed"
HEADER = ("email", "order_id", "video_title", "amount")


def csv_of(*rows: Sequence[Any], header: Sequence[str] = HEADER) -> bytes:
    written = io.StringIO()
    csv.writer(written).writerows([header, *rows])
    return written.getvalue().encode()


def row(number: int, email: str | None = None) -> tuple[str, ...]:
    """Return a row that is right, with an address of its own."""
    return (email or f"user{number}@example.com", f"{number}", "Sunrise", f"{number}.50")


def rows(count: int) -> list[tuple[str, ...]]:
    return [row(number) for number in range(count)]


def create(app: App, content: bytes, *, key: str | None = None, **fields: Any) -> Answer:
    body = {"type": TYPE, "name": "customers.csv", "size": len(content), **fields}
    return app.post("/files", body, headers={"Idempotency-Key": key or uuid4().hex})


def put_chunk(app: App, file_id: str, number: int, content: bytes) -> Answer:
    start = number * repository.CHUNK_BYTES
    chunk = content[start : start + repository.CHUNK_BYTES]
    return app.put(
        f"/files/{file_id}/chunks/{number}", {"content": base64.b64encode(chunk).decode()}
    )


def upload(app: App, content: bytes, **fields: Any) -> str:
    """Upload a file. Return its ID."""
    file_id: str = create(app, content, **fields).json()["id"]
    for number in range(repository.chunk_count(len(content))):
        assert put_chunk(app, file_id, number, content).status_code == 200
    return file_id


def check(app: App, file_id: str, **fields: Any) -> Answer:
    return app.post(f"/files/{file_id}/check", fields)


def run(file_id: str) -> int:
    """Run the steps of a file until none is left. Return how many there were."""
    steps = 0
    while runner.run(ObjectId(file_id), clock=utc_now):
        steps += 1
    return steps


def checked(app: App, content: bytes, *, type_slug: str = TYPE, **fields: Any) -> dict[str, Any]:
    """Upload and check a file. Return what the API says of it."""
    file_id = upload(app, content, type=type_slug)
    assert check(app, file_id, **fields).status_code == 202
    run(file_id)
    return read(app, file_id)


def read(app: App, file_id: str) -> dict[str, Any]:
    found: dict[str, Any] = app.get(f"/files/{file_id}").json()
    return found
