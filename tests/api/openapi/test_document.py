"""The OpenAPI document: complete, with examples that hold, and the same for everybody."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

from api.http.body import convert
from api.http.problems import MEDIA_TYPE
from api.inbox import cors
from api.openapi import document
from api.openapi.document import RATE_LIMIT_HEADERS, structures_by_name
from api.openapi.problems import CONFLICTS, CONTENT_REMOVED, SENSITIVE_DATA_DESTROYED

SHOWN_ANYWAY = {"WWW-Authenticate"}
"""Of no use to a page: its request says what it was."""

NOT_COUNTED = {"401", "403"}


@pytest.fixture(scope="module")
def described() -> Any:
    """Generate it once."""
    return SchemaGenerator().get_schema(request=None, public=True)


@pytest.fixture(scope="module")
def operations(described: Any) -> list[Any]:
    """Give the tests every operation, with its path in it."""
    return [
        {**operation, "path": path}
        for path, methods in described["paths"].items()
        for operation in methods.values()
    ]


def contents(operation: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield all an operation takes and answers with: where, the media type, the content."""
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield "request", media_type, content
    for code, response in operation["responses"].items():
        for media_type, content in response.get("content", {}).items():
            yield code, media_type, content


def values(described: Any, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the examples of a content by name."""
    found = {}
    for name, example in content.get("examples", {}).items():
        kept = example.get("$ref", "").removeprefix("#/components/examples/")
        found[name] = (described["components"]["examples"][kept] if kept else example)["value"]
    return found


def test_every_operation_has_a_summary_and_a_scope(operations: list[Any]) -> None:
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        name = operation["operationId"]
        assert 5 < len(operation["summary"]) < 100, name
        assert operation["description"].startswith(operation["summary"][:5]), name
        assert "Takes an" in operation["description"], name
        assert not operation["path"].endswith("/"), name


def test_every_request_and_response_has_an_example(described: Any, operations: Any) -> None:
    for operation in operations:
        for place, media_type, content in contents(operation):
            where = (operation["operationId"], place)
            assert values(described, content), where
            assert (media_type == MEDIA_TYPE) is (place.isdigit() and place >= "400"), where
        for parameter in operation.get("parameters", ()):
            if parameter.get("required"):
                assert parameter["example"], (operation["operationId"], parameter["name"])


def test_every_example_matches_its_schema(described: Any, operations: Any) -> None:
    for operation in operations:
        for place, _media_type, content in contents(operation):
            schema = {**content["schema"], "components": described["components"]}
            check = Draft202012Validator(schema)
            for name, value in values(described, content).items():
                wrong = [f"{e.json_path}: {e.message}" for e in check.iter_errors(value)]
                assert not wrong, (operation["operationId"], place, name)


def test_every_request_example_is_readable(described: Any, operations: Any) -> None:
    for operation in operations:
        for place, _media_type, content in contents(operation):
            if place == "request":
                structure = structures_by_name()[content["schema"]["$ref"].rpartition("/")[2]]
                for value in values(described, content).values():
                    assert convert(value, structure), operation["operationId"]


def test_no_example_text_repeats_its_field_name(described: Any, operations: list[Any]) -> None:
    """A field without a word in schema_words.py has its own name as its example."""
    for operation in operations:
        for _place, _media_type, content in contents(operation):
            for value in values(described, content).values():
                assert not [*_nameless(value, "")], "give it a word in schema_words.py"


def _nameless(value: Any, field: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _nameless(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from _nameless(part, field.rstrip("s"))
    elif value == field:
        yield field


def test_every_problem_example_has_its_code(described: Any, operations: list[Any]) -> None:
    for operation in operations:
        answers = operation["responses"]
        assert {"401", "429", "503"} <= set(answers), operation["operationId"]
        assert ("403" in answers) is ("x-scope" in operation), operation["operationId"]
        assert ("404" in answers) or ("{" not in operation["path"]), operation["operationId"]
        for place, media_type, content in contents(operation):
            if media_type == MEDIA_TYPE:
                for code, value in values(described, content).items():
                    assert (value["code"], value["status"]) == (code, int(place))


def test_operations_state_whether_they_refuse_test_keys(
    described: Any, operations: list[Any]
) -> None:
    refusing = set()
    for operation in operations:
        for place, _media_type, content in contents(operation):
            if place == "403" and "test_key" in values(described, content):
                refusing.add(operation["operationId"])
                assert "`test_key`" in operation["description"], operation["operationId"]
    assert refusing >= {"putRecipient", "eraseRecipient", "liftSuppression", "putType"}
    assert not refusing & {"createNotification", "getRecipient", "readInboxItem", "putCallback"}


def test_conflict_texts_are_those_of_the_code() -> None:
    folders = ("api", "notifications/broadcasts", "callbacks")
    paths = [p for folder in folders for p in Path(settings.BASE_DIR, folder).rglob("*.py")]
    paths.append(Path(settings.BASE_DIR, "notifications", "resend", "actions.py"))
    source = "".join(
        path.read_text() for path in paths if path.parts[-2:] != ("openapi", "problems.py")
    )
    for operation, known in CONFLICTS.items():
        for code, detail in known:
            assert f'"{code}"' in source, operation
            by_class = {SENSITIVE_DATA_DESTROYED.code, CONTENT_REMOVED.code}
            assert code in by_class or f'"{detail}"' in source, operation


def test_rate_limit_and_retry_headers_are_described(operations: list[Any]) -> None:
    for operation in operations:
        for code, response in operation["responses"].items():
            where = (operation["operationId"], code)
            headers = response["headers"]
            assert "X-Request-Id" in headers, where
            assert (set(RATE_LIMIT_HEADERS) <= set(headers)) is (code not in NOT_COUNTED), where
            assert "Retry-After" in headers or code not in ("429", "503"), where


def test_every_inbox_header_is_exposed_to_pages(operations: list[Any]) -> None:
    shown = {*cors.EXPOSED_HEADERS.split(", "), *SHOWN_ANYWAY}
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
        assert "date-time" in [one.get("format") for one in schema.get("anyOf", [schema])], field


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
    """Python 3.13 keeps docstrings without their indentation, and the ones before it with it."""
    schemas = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    texts = {name: schema.get("description", "") for name, schema in schemas.items()}
    assert [name for name, text in texts.items() if "\n    " in text] == []
    assert "\n\nA time that a clock change skips" in texts["LocalTime"]


HIDDEN = {"recipient", "delivery", "data", "error", "error_history", "status", "user_id"}


def inbox_operations(described: Any, *, of_tokens: bool) -> dict[str, Any]:
    return {
        operation["operationId"]: operation
        for path, methods in described["paths"].items()
        for operation in methods.values()
        if path.startswith("/api/v1/inbox") and ("/tokens" in path) is of_tokens
    }


def test_inbox_uses_tokens_and_token_routes_use_keys(described: Any) -> None:
    schemes = described["components"]["securitySchemes"]
    assert schemes["inboxToken"] == {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    for operation in inbox_operations(described, of_tokens=False).values():
        assert operation["security"] == [{"inboxToken": []}]
        assert "x-scope" not in operation
        assert "403" not in operation["responses"]
    for operation in inbox_operations(described, of_tokens=True).values():
        assert operation["security"] == [{"apiKey": []}]
        assert operation["x-scope"] == "inbox:issue"


def test_every_inbox_operation_is_described(described: Any) -> None:
    assert set(inbox_operations(described, of_tokens=False)) == {
        *("listInbox", "countInbox", "readAllInbox", "streamInbox"),
        *("readInboxItem", "unreadInboxItem", "archiveInboxItem", "unarchiveInboxItem"),
    }
    assert set(inbox_operations(described, of_tokens=True)) == {
        *("issueInboxToken", "revokeInboxToken", "revokeInboxTokens"),
    }
    stream = inbox_operations(described, of_tokens=False)["streamInbox"]
    assert "text/event-stream" in stream["responses"]["200"]["content"]
    assert {"400", "401", "421", "429", "503"} <= set(stream["responses"])
    assert [p["name"] for p in stream["parameters"]] == ["Last-Event-ID"]


def test_inbox_item_has_no_internal_field(described: Any) -> None:
    fields = described["components"]["schemas"]["InboxItem"]["properties"]
    assert not HIDDEN & set(fields)
