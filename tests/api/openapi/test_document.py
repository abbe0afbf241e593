"""The OpenAPI document: completeness and valid examples."""

import ast
import gzip
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from threading import Barrier, BrokenBarrierError
from typing import Any, TypeGuard

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

from api.http import problems
from api.http.body import convert
from api.http.problems import MEDIA_TYPE
from api.inbox import cors
from api.openapi import document
from api.openapi.document import RATE_LIMIT_HEADERS
from api.openapi.operations import structures
from notifications.actions import actions
from tests.support.openapi import api_document, api_operations, resolved

NOT_EXPOSED = {"WWW-Authenticate"}
"""Not exposed: of no use to a page."""
NOT_COUNTED = {"401", "403"}


@pytest.fixture
def described() -> Any:
    return api_document()


@pytest.fixture
def operations() -> list[Any]:
    return list(api_operations().values())


def contents(operation: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the place, media type, and content of the request and of each response."""
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield "request", media_type, content
    for code, response in operation["responses"].items():
        for media_type, content in response.get("content", {}).items():
            yield code, media_type, content


def values(content: Mapping[str, Any]) -> dict[str, Any]:
    examples = content.get("examples", {})
    return {name: resolved(example)["value"] for name, example in examples.items()}


def test_every_operation_has_a_summary_and_a_scope(operations: list[Any]) -> None:
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        name = operation["operationId"]
        assert 5 < len(operation["summary"]) < 100, name
        assert operation["description"].startswith(operation["summary"][:5]), name
        assert "Takes an" in operation["description"], name
        assert not operation["path"].endswith("/"), name


def test_every_request_and_response_has_an_example(operations: Any) -> None:
    for operation in operations:
        for place, media_type, content in contents(operation):
            where = (operation["operationId"], place)
            assert values(content), where
            assert (media_type == MEDIA_TYPE) is (place.isdigit() and place >= "400"), where
        for parameter in operation.get("parameters", ()):
            if parameter.get("required"):
                assert parameter["example"], (operation["operationId"], parameter["name"])


def test_every_example_matches_its_schema(described: Any, operations: Any) -> None:
    for operation in operations:
        for place, _media_type, content in contents(operation):
            schema = {**content["schema"], "components": described["components"]}
            check = Draft202012Validator(schema)
            for name, value in values(content).items():
                wrong = [f"{e.json_path}: {e.message}" for e in check.iter_errors(value)]
                assert not wrong, (operation["operationId"], place, name)


def test_every_request_example_is_readable(operations: Any) -> None:
    for operation in operations:
        for place, _media_type, content in contents(operation):
            if place == "request":
                structure = structures[content["schema"]["$ref"].rpartition("/")[2]]
                for value in values(content).values():
                    assert convert(value, structure), operation["operationId"]


def test_no_example_text_repeats_its_field_name(operations: list[Any]) -> None:
    """The generated example of a text without a declared example is the field's name."""
    for operation in operations:
        for _place, _media_type, content in contents(operation):
            for value in values(content).values():
                assert not [*_nameless(value, "")], "give the field an example"


def _nameless(value: Any, field: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _nameless(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from _nameless(part, field.rstrip("s"))
    elif value == field:
        yield field


def test_field_with_fixed_values_is_an_enum_in_every_structure(described: Any) -> None:
    schemas = described["components"]["schemas"]
    texts = [
        (structure, name, text)
        for structure, schema in schemas.items()
        for name, field in schema.get("properties", {}).items()
        if (text := _text_of(field, schemas)) is not None
    ]
    fixed = {name for _, name, text in texts if "enum" in text}
    assert fixed >= {"channel", "channels", "status", "priority", "category", "platform", "event"}
    # The type of a notification is an open vocabulary, unlike that of a callback event. A snooze
    # ends at a time, and a plan at a goal. People word the reasons of an approval and of an
    # emergency change, which somebody makes.
    others = {
        f"{structure}.{name}"
        for structure, name, text in texts
        if name in fixed - {"type"} and "enum" not in text
    }
    assert others == {
        "ApprovalView.reason",
        "ChannelPreviewView.reason",
        "EmergencyChangeView.by",
        "EmergencyChangeView.reason",
        "RefuseRequest.reason",
        "SnoozeRequest.until",
    }


def _text_of(schema: Any, schemas: Any) -> Any:
    """Return the schema of a text, of a list's texts, or of a nullable text; None for others."""
    if "$ref" in schema:
        return _text_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    options = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]
    if options:
        return next((text for option in options if (text := _text_of(option, schemas))), None)
    return schema if "enum" in schema or schema.get("type") == "string" else None


def schemas_in(value: Any) -> Iterator[Any]:
    """Yield every schema of a structure."""
    yield value
    parts = [*value.get("properties", {}).values(), *value.get("anyOf", ())]
    parts += [value[name] for name in ("items", "additionalProperties") if name in value]
    for inner in parts:
        if isinstance(inner, dict):
            yield from schemas_in(inner)


def test_request_has_no_default_that_makes_a_field_required(
    described: Any, operations: list[Any]
) -> None:
    """github.com/openapi-ts/openapi-typescript/issues/1741"""
    schemas = described["components"]["schemas"]
    pending = [
        content["schema"]["$ref"]
        for operation in operations
        for place, _, content in contents(operation)
        if place == "request"
    ]
    seen: set[str] = set()
    while pending:
        name = pending.pop().rpartition("/")[2]
        for schema in schemas_in(schemas[name]) if name not in seen else ():
            assert "default" not in schema, name
            pending += [schema["$ref"]] if "$ref" in schema else []
        seen.add(name)
    assert seen >= {"NotificationRequest", "PlanRequest", "TypeRequest", "DeviceRequest"}


def test_object_with_any_fields_says_so(described: Any) -> None:
    """Otherwise it allows no field: github.com/openapi-ts/openapi-typescript/issues/1115"""
    free = set()
    for name, structure in described["components"]["schemas"].items():
        for schema in schemas_in(structure):
            if schema.get("type") == "object" and "properties" not in schema:
                assert schema["additionalProperties"] is not False, name
                free.add(name)
    assert free >= {"NotificationRequest", "BroadcastRequest", "RecipientRequest", "ContentView"}


def test_each_problem_and_each_repeated_part_is_shared(described: Any) -> None:
    operations = [
        operation for methods in described["paths"].values() for operation in methods.values()
    ]
    responses = [row for operation in operations for row in operation["responses"].items()]
    parameters = [part for operation in operations for part in operation.get("parameters", ())]
    assert all("$ref" in response for code, response in responses if code >= "400")
    for section, used in (
        ("responses", [part for _, part in responses]),
        ("parameters", parameters),
    ):
        own = [part for part in used if "$ref" not in part]
        texts = [json.dumps(part) for part in (*own, *described["components"][section].values())]
        assert len(set(texts)) == len(texts), section


def test_document_begins_with_what_a_client_needs_first(described: Any) -> None:
    resources = [path.split("/")[3] for path in described["paths"]]
    assert list(dict.fromkeys(resources)) == list(document.RESOURCES)
    assert [tag["name"] for tag in described["tags"]] == list(document.RESOURCES)


def test_samples_send_the_example_of_the_request(operations: list[Any]) -> None:
    """Each is read by its own language: the shell's words, Python's and JavaScript's syntax."""
    for operation in operations:
        curl, python, node = [sample["source"] for sample in operation["x-codeSamples"]]
        words = shlex.split(curl)
        examples = [
            content["examples"]["request"]["value"]
            for place, _, content in contents(operation)
            if place == "request"
        ]
        sent = [json.loads(words[at + 1]) for at, word in enumerate(words) if word == "-d"]
        assert sent == examples, operation["operationId"]
        (call,) = [statement for statement in ast.walk(ast.parse(python)) if _is_request(statement)]
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        assert [ast.literal_eval(given["json"])] == examples if examples else "json" not in given
        found = re.findall(r"JSON\.stringify\((.*)\),$", node, re.MULTILINE)
        assert [json.loads(example) for example in found] == examples
        address = words[words.index("-X") + 2].removeprefix("$URL")
        assert not re.search(r"[{}]", address), operation["operationId"]
        assert f'f"{{URL}}{address}"' in python
        assert f"fetch(`${{URL}}{address}`" in node


def _is_request(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "httpx.request"


@pytest.fixture
def nothing_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "_rendered", {})


@pytest.mark.usefixtures("nothing_rendered")
def test_requests_at_once_after_the_start_render_the_document_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rendered = []
    at_once, second = Barrier(8), Barrier(2)

    def slowly(self: Any, *_: Any, **__: Any) -> dict[str, Any]:
        rendered.append(self)
        with suppress(BrokenBarrierError):
            second.wait(0.2)
        return {"openapi": "3.1.0"}

    def get(_: int) -> int:
        at_once.wait()
        return int(Client().get("/api/schema").status_code)

    monkeypatch.setattr(SchemaGenerator, "get_schema", slowly)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(get, range(8))) == {200}
    assert len(rendered) == 1


def test_document_is_compressed_and_has_an_entity_tag(client: Client) -> None:
    plain = client.get("/api/schema", headers={"Accept": "application/json"})
    small = client.get(
        "/api/schema", headers={"Accept": "application/json", "Accept-Encoding": "gzip"}
    )
    assert gzip.decompress(small.content) == plain.content
    assert len(small.content) * 8 < len(plain.content)
    assert "Accept-Encoding" in plain["Vary"]
    known = {"Accept": "application/json", "If-None-Match": plain["ETag"]}
    unchanged = client.get("/api/schema", headers=known)
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert client.get("/api/schema", headers={"If-None-Match": plain["ETag"]}).status_code == 200


def test_every_problem_example_has_its_code(operations: list[Any]) -> None:
    for operation in operations:
        answers = operation["responses"]
        assert {"401", "429", "503"} <= set(answers), operation["operationId"]
        assert ("403" in answers) is ("x-scope" in operation), operation["operationId"]
        assert ("404" in answers) or ("{" not in operation["path"]), operation["operationId"]
        for place, media_type, content in contents(operation):
            if media_type == MEDIA_TYPE:
                for code, value in values(content).items():
                    assert (value["code"], value["status"]) == (code, int(place))


def test_operations_state_whether_they_refuse_test_keys(operations: list[Any]) -> None:
    refusing = set()
    for operation in operations:
        for place, _media_type, content in contents(operation):
            if place == "403" and "test_key" in values(content):
                refusing.add(operation["operationId"])
                assert "`test_key`" in operation["description"], operation["operationId"]
    assert refusing >= {"putRecipient", "eraseRecipient", "liftSuppression", "putType"}
    assert not refusing & {"createNotification", "getRecipient", "readInboxItem", "putCallback"}


def test_operations_show_the_problems_they_name(operations: list[Any]) -> None:
    shown = {
        operation["operationId"]: {
            code
            for place, media_type, content in contents(operation)
            if media_type == MEDIA_TYPE
            for code in values(content)
        }
        for operation in operations
    }
    assert {"sensitive_data_destroyed", "invalid_state"} <= shown["retryNotification"]
    assert {"callback_disabled", "callback_pending"} <= shown["replayCallbackDelivery"]
    assert {"missing_idempotency_key", "overloaded"} <= shown["createNotifications"]
    assert {"version_conflict", "test_key"} <= shown["createTemplateVersion"]
    assert {"recipient_opted_out"} <= shown["liftSuppression"]
    assert {"wrong_endpoint", "invalid_event_id"} <= shown["streamInbox"]
    assert "empty_body" not in shown["cancelNotification"]


def test_refused_actions_have_the_texts_of_the_catalogue() -> None:
    at = datetime(2026, 7, 1, tzinfo=UTC)
    for error, problem in (
        (actions.SensitiveDataDestroyedError(), problems.SENSITIVE_DATA_DESTROYED),
        (actions.ContentRemovedError(at), problems.CONTENT_REMOVED),
    ):
        assert problems.to_api_error(error) == problem.example_error()


def test_each_code_is_in_the_catalogue_once() -> None:
    types = [
        problem for problem in vars(problems).values() if isinstance(problem, problems.ProblemType)
    ]
    assert len({problem.code for problem in types}) == len(types) > 40
    for problem in types:
        detail = problem.example_error().detail
        assert "{" not in detail
        assert detail.endswith("."), problem.code


def test_rate_limit_and_retry_headers_are_described(operations: list[Any]) -> None:
    for operation in operations:
        for code, response in operation["responses"].items():
            where = (operation["operationId"], code)
            headers = response["headers"]
            assert "X-Request-Id" in headers, where
            assert (set(RATE_LIMIT_HEADERS) <= set(headers)) is (code not in NOT_COUNTED), where
            assert "Retry-After" in headers or code not in ("429", "503"), where


def test_every_inbox_header_is_exposed_to_pages(operations: list[Any]) -> None:
    shown = {*cors.EXPOSED_HEADERS.split(", "), *NOT_EXPOSED}
    for operation in operations:
        if operation["security"] == [{"inboxToken": []}]:
            for response in operation["responses"].values():
                assert set(response["headers"]) <= shown, operation["operationId"]


def test_time_fields_have_the_date_time_format(described: Any) -> None:
    schemas = described["components"]["schemas"]
    for structure, field in (
        ("NotificationView", "created_at"),
        ("DeliveryView", "sent_at"),
        ("NotificationRequest", "scheduled_at"),
    ):
        schema = schemas[structure]["properties"][field]
        assert "date-time" in [option.get("format") for option in schema.get("anyOf", [schema])], (
            field
        )


URL = "/api/schema"


@pytest.mark.parametrize(
    ("accept", "begins"),
    [
        ("*/*", b"openapi: 3.1.0"),
        ("application/vnd.oai.openapi", b"openapi: 3.1.0"),
        ("application/json", b"{"),
        ("application/vnd.oai.openapi+json", b"{"),
    ],
)
def test_document_format_follows_accept(client: Client, accept: str, begins: bytes) -> None:
    answer = client.get(URL, headers={"Accept": accept})
    assert (answer.status_code, answer.content[: len(begins)]) == (200, begins)


def test_document_is_generated_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    document._rendered.clear()
    made: list[Any] = []
    make = SchemaGenerator.get_schema

    def counted(self: Any, **options: Any) -> Any:
        made.append(options)
        return make(self, **options)

    monkeypatch.setattr(SchemaGenerator, "get_schema", counted)
    assert client.get(URL).content == client.get(f"{URL}?again=1").content
    assert len(made) == 1


def test_structure_descriptions_are_not_indented() -> None:
    """Python before 3.13 keeps the indentation of docstrings, which are the descriptions."""
    schemas = api_document()["components"]["schemas"]
    texts = {name: schema.get("description", "") for name, schema in schemas.items()}
    assert [name for name, text in texts.items() if "\n    " in text] == []
    assert "\n\nA time that a clock change skips" in texts["LocalTime"]


HIDDEN = {"recipient", "delivery", "data", "error", "error_history", "status", "user_id"}


def inbox_operations(*, of_tokens: bool) -> dict[str, Any]:
    return {
        name: operation
        for name, operation in api_operations().items()
        if operation["path"].startswith("/api/v1/inbox")
        and ("/tokens" in operation["path"]) is of_tokens
    }


def test_inbox_uses_tokens_and_token_routes_use_keys(described: Any) -> None:
    schemes = described["components"]["securitySchemes"]
    assert schemes["inboxToken"] == {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    for operation in inbox_operations(of_tokens=False).values():
        assert operation["security"] == [{"inboxToken": []}]
        assert "x-scope" not in operation
        assert "403" not in operation["responses"]
    for operation in inbox_operations(of_tokens=True).values():
        assert operation["security"] == [{"apiKey": []}]
        assert operation["x-scope"] == "inbox:issue"


def test_every_inbox_operation_is_described(described: Any) -> None:
    assert set(inbox_operations(of_tokens=False)) == {
        "listInbox",
        "countInbox",
        "readAllInbox",
        "streamInbox",
        "readInboxItem",
        "unreadInboxItem",
        "archiveInboxItem",
        "unarchiveInboxItem",
        "snoozeInboxItem",
        "unsnoozeInboxItem",
        "actOnInboxItem",
        "getInboxPreferences",
        "putInboxPreferences",
        "getInboxPush",
        "registerInboxBrowser",
        "removeInboxBrowser",
    }
    assert set(inbox_operations(of_tokens=True)) == {
        "issueInboxToken",
        "revokeInboxToken",
        "revokeInboxTokens",
    }
    stream = inbox_operations(of_tokens=False)["streamInbox"]
    assert "text/event-stream" in stream["responses"]["200"]["content"]
    assert {"400", "401", "421", "429", "503"} <= set(stream["responses"])
    assert [p["name"] for p in stream["parameters"]] == ["Last-Event-ID"]


def test_inbox_item_has_no_internal_field(described: Any) -> None:
    fields = described["components"]["schemas"]["InboxItem"]["properties"]
    assert not HIDDEN & set(fields)
