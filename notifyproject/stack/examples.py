"""Example notifications of a new local stack, sent through the REST API."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import urllib3

from ..settings.environment import BASE_DIR

FOLDER = BASE_DIR / "tests" / "examples"
REQUEST_SECONDS = 10.0
POLL_SECONDS = 0.5
WEBHOOK_SECONDS = 1.0
TIMEOUT_SECONDS = 110.0
"""The slowest example has two retries, after 15 and 30 seconds, with jitter of a fifth."""
_RELATIVE = re.compile(r"now\+(\d+)h")
SOURCE = "examples"
"""The source of the examples. Home raises no alert about their failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request and its expected outcome."""

    name: str
    description: str
    request: Mapping[str, Any]
    expected: Mapping[str, Any]
    read_in_app: bool
    devices: tuple[Mapping[str, Any], ...] = ()
    sandbox_behaviours: Mapping[str, Any] = field(default_factory=dict)
    inbound_phones: tuple[str, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Limits to define before, by name."""
    types: Mapping[str, Any] = field(default_factory=dict)
    """Types to define before, by slug: the ``definition``, and the ``parts`` of a template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The current state of an example."""

    example: Example
    notification: Mapping[str, Any]

    @property
    def is_as_expected(self) -> bool:
        """Whether each delivery has its expected outcome."""
        expected, notification = self.example.expected, self.notification
        deliveries = {d["channel"]: d for d in notification["delivery"]}

        def have_values(field: str, values: Mapping[str, Any]) -> bool:
            return all(deliveries[channel][field] == value for channel, value in values.items())

        return (
            notification["status"] == expected["status"]
            and deliveries.keys() == expected["delivery"].keys()
            and have_values("status", expected["delivery"])
            and have_values("attempt_count", expected.get("attempts", {}))
            and have_values("failure_reason", expected.get("reasons", {}))
            and have_values("failure_code", expected.get("codes", {}))
            and len(notification["error_history"]) >= expected.get("errors", 0)
        )


class ExampleRefusedError(RuntimeError):
    """The API rejected an example. The message has its problem."""


@dataclass(frozen=True, kw_only=True)
class API:
    """Client of the REST API and of the sandbox."""

    base_url: str
    key: str
    pool: urllib3.PoolManager
    sandbox: str

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Return the JSON of the response. Raises ExampleRefusedError for an error status."""
        return self._call(method, f"{self.base_url}/api/v1{path}", body)

    def configure_sandbox(self, method: str, path: str, body: Any) -> None:
        """Call the sandbox's control API. Raises ExampleRefusedError for an error status."""
        self._call(method, f"{self.sandbox}/_sandbox{path}", body)

    def _call(self, method: str, url: str, body: Any) -> dict[str, Any]:
        response = self.pool.request(
            method,
            url,
            json=body,
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=REQUEST_SECONDS,
            retries=False,
        )
        reply = response.json() if response.data else {}
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise ExampleRefusedError(
                f"{method} {url}: {reply.get('detail')} {reply.get('errors')}"
            )
        return reply


def load(now: datetime, *, folder: Path = FOLDER) -> list[Example]:
    """Return the examples, with relative times (``now+2h``) as absolute ones."""
    examples = []
    for path in sorted(folder.glob("*.json")):
        stored = json.loads(path.read_text(encoding="utf-8"))
        examples.append(
            Example(
                name=path.stem.partition("_")[2],
                description=stored["about"],
                request=_resolve_times(stored["request"], now),
                expected=stored["expect"],
                read_in_app=stored.get("read_in_app", False),
                devices=tuple(stored.get("devices", ())),
                sandbox_behaviours=stored.get("sandbox", {}),
                inbound_phones=tuple(stored.get("written", ())),
                limits=stored.get("limits", {}),
                types=stored.get("types", {}),
            )
        )
    return examples


def send_all(api: API, examples: list[Example]) -> list[Outcome]:
    """Prepare and send the examples; return their states after acceptance."""
    for example in examples:
        for device in example.devices:
            api.call("PUT", "/devices", device)
        for slug, definition in example.types.items():
            _define_type(api, slug, definition)
        for name, limit in example.limits.items():
            api.call("PUT", f"/limits/{name}", limit)
        for match, behaviour in example.sandbox_behaviours.items():
            api.configure_sandbox("PUT", f"/behaviours/{match}", behaviour)
        for phone in example.inbound_phones:
            api.configure_sandbox("POST", "/whatsapp/written", {"from": phone, "text": "Hello"})
    if any(example.inbound_phones for example in examples):
        # The sandbox sends these messages to the service by webhook.
        time.sleep(WEBHOOK_SECONDS)
    return [
        Outcome(
            example=example,
            notification=api.call("POST", "/notifications", {"source": SOURCE, **example.request}),
        )
        for example in examples
    ]


def _define_type(api: API, slug: str, example: Mapping[str, Any]) -> None:
    api.call("PUT", f"/types/{slug}", example["definition"])
    version = api.call("POST", f"/types/{slug}/templates", {"parts": example["parts"]})
    api.call("POST", f"/types/{slug}/templates/versions/{version['number']}/publish", {})


def follow(
    api: API, outcomes: list[Outcome], *, stop: Callable[[], bool]
) -> Iterator[list[Outcome]]:
    """Yield all states at once and after each change, until all are as expected, or to stop."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    to_read = {o.example.request["user_id"] for o in outcomes if o.example.read_in_app}
    for user_id in to_read:
        api.call("POST", f"/recipients/{user_id}/notifications/read-all")
    yield outcomes
    while not all(o.is_as_expected for o in outcomes):
        if stop() or time.monotonic() > deadline:
            return
        time.sleep(POLL_SECONDS)
        latest = [
            Outcome(
                example=o.example,
                notification=api.call("GET", f"/notifications/{o.notification['id']}"),
            )
            for o in outcomes
        ]
        if [o.notification for o in latest] != [o.notification for o in outcomes]:
            outcomes = latest
            yield outcomes


def format_table(outcomes: list[Outcome]) -> str:
    """Format the states as a table for a terminal."""
    rows = [("example", "status", "deliveries")]
    rows += [
        (o.example.name, o.notification["status"], _describe(o.notification)) for o in outcomes
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _describe(notification: Mapping[str, Any]) -> str:
    def describe_delivery(delivery: Mapping[str, Any]) -> str:
        text = f"{delivery['channel']} {delivery['status']}"
        if delivery["status"] == "pending" and delivery["next_attempt_at"]:
            text += f" until {delivery['next_attempt_at'][:16].replace('T', ' ')}"
        if delivery["attempt_count"] > 1:
            text += f" after {delivery['attempt_count']} attempts"
        return f"{text} ({delivery['failure_code']})" if delivery["failure_code"] else text

    return ", ".join(describe_delivery(delivery) for delivery in notification["delivery"])


def _resolve_times(value: Any, now: datetime) -> Any:
    if isinstance(value, dict):
        return {name: _resolve_times(item, now) for name, item in value.items()}
    if isinstance(value, str) and (match := _RELATIVE.fullmatch(value)):
        time_at = now.astimezone(UTC) + timedelta(hours=int(match[1]))
        return time_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return value
