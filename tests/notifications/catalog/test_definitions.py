"""What a type may be: one set of fields and checks, by the API and in the console."""

from typing import Any

import pytest

from api.types.schemas import TypeView
from console.types.form import NotificationTypeForm
from domain.states import Channel
from notifications.catalog import definitions
from notifications.catalog.default_types import DEFAULT_TYPES
from notifications.catalog.definitions import TypeRequest, WhatsAppTemplateRequest
from notifications.models import NotificationType
from notifications.validation import InvalidRequestError

FIELDS = set(TypeRequest.__struct_fields__)
STAMPS = {"created_at", "updated_at", "template_version"}


def test_the_api_takes_what_it_shows_and_what_is_stored() -> None:
    assert set(TypeView.__struct_fields__) == FIELDS | STAMPS | {"slug"}
    stored = {field.name for field in NotificationType._meta.fields}
    assert stored == FIELDS | STAMPS | {"slug"}


def test_the_console_has_the_same_fields() -> None:
    assert set(NotificationTypeForm.base_fields) == FIELDS | {"slug"}


@pytest.mark.parametrize("default", DEFAULT_TYPES, ids=lambda default: default.slug)
def test_every_shipped_type_is_one(default: Any) -> None:
    shipped = {name: getattr(default, name) for name in FIELDS if hasattr(default, name)}
    lists = {name: list(shipped[name]) for name in ("channels", "sensitive_variables")}
    assert definitions.validate_type(default.slug, TypeRequest(**(shipped | lists)))


WORDING = {"locale": "pt", "name": "lost", "language": "pt_PT", "parameters": ["parcel"]}


def wrong(**fields: Any) -> dict[str, str]:
    """Return the problems of a type that is good but for these fields: code by pointer."""
    default: dict[str, Any] = {
        "name": "Parcel lost",
        "category": "transactional",
        "channels": ["email", "whatsapp", "in_app"],
        "example_data": {"parcel": "77"},
    }
    if wordings := fields.pop("wordings", None):
        fields["approved_templates"] = [
            WhatsAppTemplateRequest(**(WORDING | one)) for one in wordings
        ]
    try:
        definitions.validate_type("parcel_lost", TypeRequest(**(default | fields)))
    except InvalidRequestError as refused:
        return {problem.pointer: problem.code for problem in refused.problems}
    return {}


@pytest.mark.parametrize("channel", ["email", "whatsapp", "in_app", "in-app"])
def test_any_of_its_channels_may_stand_in_for_another(channel: str) -> None:
    assert wrong(fallback_channel=channel) == {}


@pytest.mark.parametrize(
    ("channels", "fallback", "code"),
    [
        (["email", "in_app"], "whatsapp", "not_a_channel"),
        (["email"], "email", "no_other_channel"),
        (["email", "in_app"], "email", "no_other_channel"),
        (["in_app"], "in_app", "no_other_channel"),
        (["email", "push"], "pigeon", "unknown_channel"),
        (["email", "push"], "", "unknown_channel"),
    ],
)
def test_a_channel_that_never_would_stand_in_is_refused(
    channels: list[str], fallback: str, code: str
) -> None:
    assert wrong(channels=channels, fallback_channel=fallback) == {"/fallback_channel": code}


def test_what_is_wrong_with_the_channels_is_told_once() -> None:
    assert wrong(channels=[], fallback_channel="email") == {"/channels": "no_channel"}


def test_what_is_stored_is_in_our_words() -> None:
    request = TypeRequest(
        name="Parcel lost",
        category="alert",
        channels=["all"],
        fallback_channel="in-app",
        approved_templates=[WhatsAppTemplateRequest(locale="pt", name="lost", language="pt")],
    )
    stored = definitions.validate_type("parcel_lost", request)
    assert stored["channels"] == [channel.value for channel in Channel]
    assert stored["fallback_channel"] == "in_app"
    assert stored["approved_templates"] == [
        {"locale": "pt", "name": "lost", "language": "pt", "parameters": []}
    ]


@pytest.mark.parametrize(
    "one", [{}, {"locale": "pt-BR", "language": "pt_BR"}, {"language": "fil"}, {"parameters": []}]
)
def test_a_wording_that_meta_may_have_approved_is_stored(one: dict[str, Any]) -> None:
    assert wrong(wordings=[one]) == {}


@pytest.mark.parametrize(
    ("one", "field", "code"),
    [
        ({"locale": ""}, "locale", "invalid_locale"),
        ({"locale": "pt_PT"}, "locale", "invalid_locale"),
        ({"name": ""}, "name", "invalid_name"),
        ({"name": "Order shipped"}, "name", "invalid_name"),
        ({"language": ""}, "language", "invalid_language"),
        ({"language": "pt-PT"}, "language", "invalid_language"),
        ({"parameters": ["parcel", "order"]}, "parameters/1", "unknown_variable"),
        ({"parameters": ["recipient.name"]}, "parameters/0", "unknown_variable"),
    ],
)
def test_what_is_no_wording_is_told_with_its_place(
    one: dict[str, Any], field: str, code: str
) -> None:
    assert wrong(wordings=[{}, {"locale": "en"} | one]) == {f"/approved_templates/1/{field}": code}


def test_a_language_has_one_wording() -> None:
    said = wrong(wordings=[{"locale": "pt-BR"}, {"locale": "pt-br"}])
    assert said == {"/approved_templates/1/locale": "duplicate_locale"}


def nested(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return {"a": value}


@pytest.mark.parametrize(
    ("data", "pointer", "code"),
    [
        (nested(10), "/example_data", "too_deep"),
        (nested(100_000), "/example_data", "too_deep"),
        ({f"n{n}": n for n in range(501)}, "/example_data", "too_many_properties"),
        ({"n": float("nan")}, "/example_data/n", "no_number"),
        ({"n": 2**63}, "/example_data/n", "integer_too_large"),
        ({"a": {"b.c": 1}}, "/example_data/a/b.c", "forbidden_key"),
        ({"a": "\x00"}, "/example_data/a", "nul_character"),
    ],
)
def test_example_data_is_what_can_be_kept(data: dict[str, Any], pointer: str, code: str) -> None:
    assert wrong(example_data=data) == {pointer: code}


@pytest.mark.parametrize("levels", [0, 9])
def test_example_data_may_have_parts(levels: int) -> None:
    assert wrong(example_data=nested(levels)) == {}


def test_there_are_not_too_many_secrets_and_each_has_a_name() -> None:
    assert wrong(sensitive_variables=["a" * 64]) == {}
    assert wrong(sensitive_variables=["a" * 65]) == {"/sensitive_variables/0": "invalid"}
    many = [f"n{n}" for n in range(101)]
    assert wrong(sensitive_variables=many) == {"/sensitive_variables": "too_many"}
