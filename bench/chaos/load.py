"""An API client that records every answer, request bodies, and a generator of load."""

import base64
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import urllib3

from .evidence import ACCEPTED, Answer

THREADS = 8
TIMEOUT = urllib3.Timeout(connect=3, read=30)
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
BULK_SIZE = 1_000
RETRY_TIMEOUT = 120.0
"""How long a client retries, in seconds."""
OK, CONFLICT, RETRIED = 200, 409, (None, 429, *range(500, 600))
Body = Mapping[str, Any]
NEWS = {"subject": "News", "body": "The same for everybody."}


class Client:
    """A thread-safe API client with one key."""

    def __init__(self, *, url: str, key: str) -> None:
        self._url = f"{url}/api/v1"
        self.key = key
        self._headers = {"Authorization": f"Bearer {key}"}
        self._http = urllib3.PoolManager(num_pools=4, maxsize=64, timeout=TIMEOUT, retries=False)
        self._lock = threading.Lock()
        self.on_accepted: Callable[[Answer], object] | None = None
        """Called with each acceptance, in the thread that received it."""
        self.answers: list[Answer] = []
        """Every answer about a notification, in order."""

    def send(self, body: Body, *, key: str, retry_timeout: float = RETRY_TIMEOUT) -> Answer:
        """Send a notification; retry on 429, 5xx, or no answer. Return the last answer."""
        deadline, pause = time.monotonic() + retry_timeout, FIRST_PAUSE
        while True:
            answer = self.send_once(body, key=key)
            if answer.status not in RETRIED or time.monotonic() + pause > deadline:
                return answer
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def send_each(self, bodies: Iterable[Body], *, name: str) -> list[Answer]:
        """Send notifications one after the other with :meth:`send`; return the last answers."""
        return [self.send(body, key=f"{name}-{number}") for number, body in enumerate(bodies)]

    def send_once(self, body: Body, *, key: str) -> Answer:
        """Send a notification once and record the answer."""
        status, response = self.call("POST", "/notifications", body, **{"Idempotency-Key": key})
        accepted: Mapping[str, Any] = response if status == ACCEPTED else {}
        answer = Answer(
            key=key,
            at=datetime.now(UTC),
            status=status,
            notification_id=accepted.get("id"),
            channels=tuple(delivery["channel"] for delivery in accepted.get("delivery", ())),
        )
        with self._lock:
            self.answers.append(answer)
        if self.on_accepted is not None and answer.is_accepted:
            self.on_accepted(answer)
        return answer

    def send_many(self, bodies: Sequence[Body], *, key: str) -> list[Answer]:
        """Send one bulk request without retries; record and return the answers by item."""
        body, headers = {"notifications": bodies}, {"Idempotency-Key": key}
        status, response = self.call("POST", "/notifications/bulk", body, **headers)
        results = response["results"] if status == OK else [{}] * len(bodies)
        answers = [
            Answer(
                key=key,
                item=place,
                at=datetime.now(UTC),
                status=ACCEPTED if "id" in result else status,
                notification_id=result.get("id"),
                channels=tuple(body["channels"]) if "id" in result else (),
            )
            for place, (body, result) in enumerate(zip(bodies, results, strict=True))
        ]
        with self._lock:
            self.answers += answers
        return answers

    def send_in_bulk(self, count: int, *, body: Callable[[int], Body], name: str) -> int:
        """Send bulk requests without retries; return the number of accepted notifications."""
        accepted = 0
        for start in range(0, count, BULK_SIZE):
            numbers = range(start, min(start + BULK_SIZE, count))
            answers = self.send_many([body(number) for number in numbers], key=f"{name}-{start}")
            accepted += sum(answer.is_accepted for answer in answers)
        return accepted

    def call(self, method: str, path: str, body: Body, **headers: str) -> tuple[int | None, Any]:
        """Call the API; return the status and the JSON, or (None, None) if there is no answer."""
        merged = {**self._headers, **headers}
        try:
            response = self._http.request(method, f"{self._url}{path}", headers=merged, json=body)
            return response.status, response.json() if response.data else None
        except (urllib3.exceptions.HTTPError, ValueError):
            return None, None


@dataclass(kw_only=True)
class Load:
    """Sends notifications in the background: ``rate`` per second, in bursts of ``burst``."""

    client: Client
    count: int
    rate: float
    body: Callable[[int], Body]
    burst: int = 1
    name: str = "n"
    done: int = field(default=0, init=False)
    """The number of answered or abandoned notifications."""

    def __post_init__(self) -> None:
        self._stopped, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether all notifications were sent."""
        return not self._thread.is_alive()

    def finish(self) -> None:
        """Wait until all notifications are sent."""
        self._thread.join()

    def stop(self) -> None:
        """Stop sending, and wait for the requests in progress."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        with ThreadPoolExecutor(THREADS, thread_name_prefix="load") as threads:
            for start in range(0, self.count, self.burst):
                pause = began + start / self.rate - time.monotonic()
                if self._stopped.wait(max(pause, 0)):
                    # After an outage, thousands may wait for a thread.
                    threads.shutdown(cancel_futures=True)
                    return
                numbers = range(start, min(start + self.burst, self.count))
                if self.burst > 1:
                    wait([threads.submit(self._send, number) for number in numbers])
                else:
                    threads.submit(self._send, start)

    def _send(self, number: int) -> None:
        try:
            self.client.send(self.body(number), key=f"{self.name}-{number}")
        finally:
            with self._lock:
                self.done += 1


def mail_body(number: int, *, to: str = "user", **fields: Any) -> dict[str, Any]:
    """Return the request body of a mail. ``to`` chooses the sandbox's outcome."""
    return {
        "type": "payment_confirmed",
        "user_id": f"user-{number}",
        "recipient": {"email": f"{to}+{number}@example.com"},
        "channels": ["email"],
        "data": {"order_id": number, "video_title": "Sunrise", "amount": "49.90"},
        **fields,
    }


def define_digest(client: Client, slug: str, **digest: Any) -> None:
    """Define a type whose emails to one recipient are sent as one, with a published template."""
    fields = {
        "name": "Comment",
        "category": "transactional",
        "channels": ["email"],
        "example_data": {"number": 1},
        "digest": {"window": {"minutes": 1}, **digest},
    }
    body = (
        "{% if digest %}{% for item in digest.items %}{{ item.data.number }} {% endfor %}"
        "{{ digest.more }} more{% else %}{{ number }}{% endif %}"
    )
    parts = {"default": {"subject": "Comments", "body": body}}
    for method, path, sent in (
        ("PUT", f"/types/{slug}", fields),
        ("POST", f"/types/{slug}/templates", {"parts": parts}),
        ("POST", f"/types/{slug}/templates/versions/1/publish", {}),
    ):
        status, response = client.call(method, path, sent)
        if status not in (200, 201):
            raise RuntimeError(f"{path} was refused with {status}: {response}")


def upload_file(client: Client, content: bytes, *, type_slug: str) -> str:
    """Upload a file of recipients chunk by chunk, and have it checked. Return its ID."""
    key = {"Idempotency-Key": hashlib.sha256(content).hexdigest()}
    body = {"type": type_slug, "name": "customers", "size": len(content)}
    created = call_until_done(client, "POST", "/files", body, **key)
    file_id: str = created["id"]
    size: int = created["chunk_bytes"]
    for number in created["missing_chunks"]:
        chunk = base64.b64encode(content[number * size : (number + 1) * size]).decode()
        call_until_done(client, "PUT", f"/files/{file_id}/chunks/{number}", {"content": chunk})
    change_until_done(client, f"/files/{file_id}/check", {})
    return file_id


def change_until_done(client: Client, path: str, body: Body | None = None) -> None:
    """Post a change until it is made. Repeated after a lost answer, it conflicts with itself."""
    status = None
    while status not in (OK, ACCEPTED, CONFLICT):
        status, _ = client.call("POST", path, body or {})
        time.sleep(FIRST_PAUSE)


def send_file(client: Client, file_id: str, *, type_slug: str, **fields: Any) -> None:
    """Send a checked file: a message for each good row."""
    audience = {"file": file_id, "skip_wrong_rows": True}
    body = {"type": type_slug, "audience": audience, **fields}
    call_until_done(client, "POST", "/broadcasts", body, **{"Idempotency-Key": file_id})


def call_until_done(
    client: Client, method: str, path: str, body: Body, **headers: str
) -> dict[str, Any]:
    """Call the API until it answers. Return the JSON. Raises RuntimeError for a refusal."""
    until = time.monotonic() + RETRY_TIMEOUT
    while time.monotonic() < until:
        status, response = client.call(method, path, body, **headers)
        if status in (OK, ACCEPTED):
            found: dict[str, Any] = response
            return found
        if status not in RETRIED:
            break
        time.sleep(FIRST_PAUSE)
    raise RuntimeError(f"{path} was refused with {status}: {response}")


def digest_body(number: int, *, slug: str, recipient: int) -> dict[str, Any]:
    """Return the request body of a mail that goes into a recipient's digest."""
    return {
        "type": slug,
        "user_id": f"recipient-{recipient}",
        "recipient": {"email": f"user+{recipient}@example.com"},
        "data": {"number": number},
    }


def uniform_mail_body(number: int, **fields: Any) -> dict[str, Any]:
    """Return the body of a mail with fixed content, so that the provider request can be shared."""
    return {**mail_body(number), "type": "transactional", "content": NEWS, "data": {}, **fields}


def push_body(number: int, *, user_id: str, **fields: Any) -> dict[str, Any]:
    """Return the request body of a push to a user's devices."""
    return {**in_app_body(number), "user_id": user_id, "channels": ["push"], **fields}


def device_body(*, user_id: str, token: str = "delivered-phone") -> dict[str, Any]:
    """Return the request body of a device. ``token`` chooses the sandbox's outcome."""
    return {"user_id": user_id, "device_token": token, "platform": "android"}


def in_app_body(number: int, **fields: Any) -> dict[str, Any]:
    """Return the request body of an inbox item."""
    return {
        "type": "order_shipped",
        "user_id": f"user-{number}",
        "channels": ["in_app"],
        "data": {"order": str(number)},
        **fields,
    }
