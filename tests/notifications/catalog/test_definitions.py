"""Validation of notification types by the API and the console."""

from typing import Any

import pytest

from api.types.schemas import TypeView
from console.types.form import NotificationTypeForm
from notifications.catalog import definitions
from notifications.catalog.definitions import TypeRequest, WhatsAppTemplateRequest
from notifications.models import NotificationType
from notifications.validation import ChannelNames, InvalidRequestError
from tests.support.tables import each_case

FORM_FIELDS = set(TypeRequest.__struct_fields__)
FIELDS = FORM_FIELDS - definitions.TRANSIENT
"""The stored fields."""
STAMPS = {"created_at", "updated_at", "template_version"}


def test_api_fields_equal_stored_fields() -> None:
    assert set(TypeView.__struct_fields__) == FIELDS | STAMPS | {"slug"}
    stored = {field.name for field in NotificationType._meta.fields}
    assert stored == FIELDS | STAMPS | {"slug", "categories", "emergency_changes"}


def test_console_form_has_the_same_fields() -> None:
    # The goal of a plan is a choice beside its steps. Files alone say who manages a type.
    own = {"slug", "plan_until", "emergency_reason"}
    assert set(NotificationTypeForm.base_fields) == FORM_FIELDS - definitions.OF_MANAGEMENT | own


TEMPLATE = {"locale": "pt", "name": "lost", "language": "pt_PT", "parameters": ["parcel"]}


def problems_of(**fields: Any) -> dict[str, str]:
    default: dict[str, Any] = {
        "name": "Parcel lost",
        "category": "transactional",
        "channels": ["email", "whatsapp", "in_app"],
        "example_data": {"parcel": "77"},
    }
    if templates := fields.pop("templates", None):
        fields["approved_templates"] = [
            WhatsAppTemplateRequest(**(TEMPLATE | template)) for template in templates
        ]
    try:
        definitions.validate_type("parcel_lost", TypeRequest(**(default | fields)))
    except InvalidRequestError as refused:
        return {problem.pointer: problem.code for problem in refused.problems}
    return {}


EVERY = ["email", "push", "whatsapp", "in_app"]
"""What ``all`` names without a provider of an optional channel."""


@pytest.mark.parametrize("channels", ["all", ["all"]])
def test_all_is_every_channel_of_a_type(channels: ChannelNames) -> None:
    request = TypeRequest(name="Parcel lost", category="alert", channels=channels)
    assert definitions.validate_type("parcel_lost", request)["channels"] == EVERY


@pytest.mark.parametrize("channel", ["email", "whatsapp", "in_app", "in-app"])
def test_each_channel_can_be_the_fallback_of_another(channel: str) -> None:
    assert problems_of(fallback_channel=channel) == {}


@each_case(
    "channels, fallback, code",
    [
        (["email", "in_app"], "whatsapp", "not_a_channel"),
        (["email"], "email", "no_other_channel"),
        (["email", "in_app"], "email", "no_other_channel"),
        (["in_app"], "in_app", "no_other_channel"),
        (["email", "push"], "pigeon", "unknown_channel"),
        (["email", "push"], "", "unknown_channel"),
    ],
)
def test_invalid_fallback_channel_is_refused(channels: list[str], fallback: str, code: str) -> None:
    assert problems_of(channels=channels, fallback_channel=fallback) == {"/fallback_channel": code}


def test_invalid_channels_are_reported_once() -> None:
    assert problems_of(channels=[], fallback_channel="email") == {"/channels": "no_channel"}


def test_values_are_stored_in_normal_form() -> None:
    request = TypeRequest(
        name="Parcel lost",
        category="alert",
        channels=["all"],
        fallback_channel="in-app",
        approved_templates=[WhatsAppTemplateRequest(locale="pt", name="lost", language="pt")],
    )
    stored = definitions.validate_type("parcel_lost", request)
    assert stored["channels"] == EVERY
    assert stored["fallback_channel"] == "in_app"
    assert stored["approved_templates"] == [
        {"locale": "pt", "name": "lost", "language": "pt", "parameters": []}
    ]


@pytest.mark.parametrize(
    "given", [{}, {"locale": "pt-BR", "language": "pt_BR"}, {"language": "fil"}, {"parameters": []}]
)
def test_valid_whatsapp_template_is_stored(given: dict[str, Any]) -> None:
    assert problems_of(templates=[given]) == {}


@each_case(
    "given, field, code",
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
def test_invalid_whatsapp_template_is_reported_with_its_pointer(
    given: dict[str, Any], field: str, code: str
) -> None:
    assert problems_of(templates=[{}, {"locale": "en"} | given]) == {
        f"/approved_templates/1/{field}": code
    }


def test_each_locale_has_one_whatsapp_template() -> None:
    problems = problems_of(templates=[{"locale": "pt-BR"}, {"locale": "pt-br"}])
    assert problems == {"/approved_templates/1/locale": "duplicate_locale"}


def nested(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return {"a": value}


@each_case(
    "data, pointer, code",
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
def test_invalid_example_data_is_refused(data: dict[str, Any], pointer: str, code: str) -> None:
    assert problems_of(example_data=data) == {pointer: code}


@pytest.mark.parametrize("levels", [0, 9])
def test_nested_example_data_is_accepted(levels: int) -> None:
    assert problems_of(example_data=nested(levels)) == {}


def test_sensitive_variables_are_limited() -> None:
    assert problems_of(sensitive_variables=["a" * 64]) == {}
    assert problems_of(sensitive_variables=["a" * 65]) == {"/sensitive_variables/0": "invalid"}
    many = [f"n{n}" for n in range(101)]
    assert problems_of(sensitive_variables=many) == {"/sensitive_variables": "too_many"}


@each_case(
    "given, problem",
    [
        ({"body": "Parcel {{1}} is lost."}, {}),
        ({"body": "Parcel {{parcel}} is lost."}, {"body": "wrong_placeholders"}),
        ({"body": "Parcel {{2}} is lost."}, {"body": "wrong_placeholders"}),
        ({"body": "A parcel is lost."}, {"body": "wrong_placeholders"}),
        ({"body": "{{1}} is lost."}, {"body": "placeholder_at_the_end"}),
        ({"body": "It is lost: {{1}} "}, {"body": "placeholder_at_the_end"}),
        ({"button": "parcel"}, {}),
        ({"button": "parcel", "body": "Code {{1}}."}, {"body": "fixed_text"}),
        ({"button": "pin"}, {"button": "invalid_button"}),
        ({"button": "parcel", "parameters": []}, {"button": "invalid_button"}),
    ],
)
def test_wording_of_a_whatsapp_template_matches_its_parameters(
    given: dict[str, Any], problem: dict[str, str]
) -> None:
    expected = {f"/approved_templates/0/{field}": code for field, code in problem.items()}
    assert problems_of(templates=[given]) == expected
