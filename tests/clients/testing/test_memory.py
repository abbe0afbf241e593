"""The service in memory answers as the API does."""

import json
import os
import random
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
import yaml
from django.conf import settings
from notifyproject_client import NotificationRejectedError, Notifier
from notifyproject_client.rest.api.devices import list_devices
from notifyproject_client.testing.checks import NotInMemoryError
from notifyproject_client.testing.memory import KEY, URL, MemoryService

from tests.clients.testing.answers import (
    TYPES,
    Case,
    answers_of,
    asking_api,
    asking_memory,
    check_answers,
)
from tests.support import samples
from tests.support.clients.api import new_app
from tests.support.tables import each_case

PATH = Path(settings.BASE_DIR, "clients", "conformance", "testing", "requests.json")
CASES = json.loads(PATH.read_text())["cases"]
WITHOUT_TYPES = [case for case in CASES if not case.get("types")]
RANDOM_CASES = int(os.environ.get("FUZZ_CASES", "150"))
WRONG = (None, True, 0, -1, 7, 1.5, "", " ", "x", "x" * 400, "a\nb", "a/b", [], [1], {}, {"a": 1})
"""What takes the place of a field's value."""
NAMES = (
    *("type", "user_id", "recipient", "channels", "plan", "priority", "entity_id", "external_id"),
    *("source", "content", "data", "scheduled_at", "scheduled_local", "ttl", "expires_at"),
    *("max_retries", "ignore_limits", "email", "phone", "name", "locale", "timezone", "body"),
    *(
        "subject",
        "image_url",
        "deep_link",
        "payload",
        "reply_to",
        "push",
        "steps",
        "until",
        "after",
    ),
    "colour",
)


@pytest.mark.usefixtures("db", "broker", "shipped_types")
@each_case("case", CASES)
def test_api_passes_the_case(case: Case) -> None:
    check_answers(case, answers_of(case, asking_api(new_app(case["name"], is_test=True))))


@pytest.fixture(scope="module")
def _with_types() -> MemoryService:
    return MemoryService(types=TYPES)


@pytest.fixture
def with_types(_with_types: MemoryService) -> MemoryService:
    _with_types.reset()
    return _with_types


@each_case("case", CASES)
def test_memory_with_types_passes_the_case(case: Case, with_types: MemoryService) -> None:
    with_types.reset()
    check_answers(case, answers_of(case, asking_memory(with_types)))


@each_case("case", WITHOUT_TYPES)
def test_memory_without_types_passes_the_case(case: Case) -> None:
    check_answers(case, answers_of(case, asking_memory(MemoryService())))


@pytest.mark.usefixtures("db", "broker", "shipped_types")
def test_random_requests_get_the_same_status_and_code(with_types: MemoryService) -> None:
    api, memory = asking_api(new_app("tester", is_test=True)), asking_memory(with_types)
    chosen = random.Random(samples.SEED)
    valid = [
        step["body"]
        for case in CASES
        for step in case["steps"]
        if "body" in step and "path" not in step and isinstance(step["body"], dict)
    ]
    for _ in range(RANDOM_CASES):
        body = json.loads(json.dumps(chosen.choice(valid)))
        for _ in range(chosen.randint(1, 3)):
            _change(body, chosen)
        case = {"steps": [{"body": body, "status": 0}]}
        (wanted,), (found,) = answers_of(case, api), answers_of(case, memory)
        assert (found.status, found.code) == (wanted.status, wanted.code), json.dumps(
            {"seed": samples.SEED, "body": body, "wanted": wanted.errors, "found": found.errors}
        )
        assert found.errors.items() <= wanted.errors.items(), body


def _change(body: dict[str, Any], chosen: random.Random) -> None:
    """Replace, add, or remove a field of an object within a body."""
    inner = [one for one in _objects(body) if one] or [body]
    part = chosen.choice(inner)
    name = chosen.choice([*part, *part, chosen.choice(NAMES)])
    if chosen.random() < 0.2:
        part.pop(name, None)
    else:
        part[name] = deepcopy(chosen.choice(WRONG))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)


@pytest.fixture(scope="module")
def described() -> Mapping[str, Any]:
    text = Path(settings.BASE_DIR, "clients", "python", "openapi.yaml").read_text()
    return yaml.load(text, yaml.CSafeLoader)


def test_each_answer_has_the_structure_that_the_api_describes(
    described: Mapping[str, Any], with_types: MemoryService
) -> None:
    seen = set()
    for case in CASES:
        with_types.reset()
        for answer in answers_of(case, asking_memory(with_types)):
            if (schema := _schema_of(answer.body)) is not None:
                whole = {**schema, "components": described["components"]}
                jsonschema_rs.validate(whole, answer.body)
                seen.add(schema["$ref"])
    assert len(seen) == 5


def _schema_of(body: Any) -> dict[str, Any] | None:
    for field, name in {
        "title": "ProblemView",
        "warnings": "AcceptedNotificationView",
        "can_retry": "ExpandedNotificationView",
        "accepted": "BulkView",
        "next": "OutboxList",
    }.items():
        if body and field in body:
            return {"$ref": f"#/components/schemas/{name}"}
    return None


@pytest.fixture
def memory() -> MemoryService:
    return MemoryService()


@pytest.fixture
def notifier(memory: MemoryService) -> Iterator[Notifier]:
    with Notifier(URL, key=KEY, transport=memory.transport) as notifier:
        yield notifier


def test_what_it_has_not_is_an_error_and_no_answer(notifier: Notifier) -> None:
    with pytest.raises(NotInMemoryError, match="listDevices"):
        list_devices.sync(user_id="ada", client=notifier.rest)
    with pytest.raises(NotInMemoryError, match="issueInboxToken"):
        notifier.inbox_token("ada")
    with pytest.raises(NotInMemoryError, match="reminder"):
        notifier.notify("visit", email="ada@example.com", event_at="2027-01-01T09:00:00Z")


def test_registered_recipient_has_an_address(memory: MemoryService, notifier: Notifier) -> None:
    with pytest.raises(NotificationRejectedError, match="No email address"):
        notifier.notify("visit", user_id="ada", channels=["email"])
    memory.recipients["ada"] = {"email": "ada@example.com"}
    sent = notifier.notify("visit", user_id="ada", channels=["email"])
    assert sent.recipient.email == "ada@example.com"


def test_live_key_is_refused(memory: MemoryService) -> None:
    with (
        Notifier(URL, key="ntf_live", transport=memory.transport) as live,
        pytest.raises(NotificationRejectedError, match="unauthenticated"),
    ):
        live.notify("visit", email="ada@example.com")


def test_what_waits_is_not_in_the_outbox(memory: MemoryService) -> None:
    ask = asking_memory(memory)
    plan = {"steps": [{"channels": ["email"]}, {"channels": ["sms"], "after": 3600}]}
    person = {"email": "ada@example.com", "phone": "+351912345678"}
    for more in ({"plan": plan}, {"scheduled_at": "$+3600"}):
        body = {"type": "visit", "recipient": person, "content": {"body": "Hi"}, **more}
        (answer,) = answers_of({"steps": [{"body": body}]}, ask)
        assert answer.body["phase"] == "pending"
    (listed,) = answers_of({"steps": [{"method": "GET", "path": "/test/outbox"}]}, ask)
    assert [one["channel"] for one in listed.body["results"]] == ["email"]
    assert listed.body["results"][0]["text"] == "Hi"


def test_data_that_differs_from_a_schema_that_warns_is_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / "types" / "visit"
    folder.mkdir(parents=True)
    (folder / "type.yaml").write_text(
        "name: Visit\ncategory: transactional\nchannels: [email]\nschema_mode: warn\n"
    )
    (folder / "schema.json").write_text('{"type": "object", "required": ["at"]}')
    (folder / "subject.txt").write_text("Visit\n")
    (folder / "body.txt").write_text("A visit.\n")
    body = {"type": "visit", "recipient": {"email": "ada@example.com"}}
    ask = asking_memory(MemoryService(types=tmp_path))
    (answer,) = answers_of({"steps": [{"body": body}]}, ask)
    [warning] = answer.body["warnings"]
    assert (warning["pointer"], warning["code"]) == ("/data/at", "missing_variable")


def test_answer_of_a_request_over_http_is_read_by_httpx(memory: MemoryService) -> None:
    with httpx.Client(base_url=URL, transport=memory.transport) as client:
        assert client.get("/api/v1/notifications").status_code == 401
