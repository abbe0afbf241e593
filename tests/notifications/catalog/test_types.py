"""The registry of types: shipped types, changes by staff, and lookup."""

from typing import Any

import pytest

from domain.channels import Channel
from domain.states import SchemaMode
from domain.type_rules import SUPPLIED
from notifications.catalog import schemas, types
from notifications.catalog.definitions import RESERVED_VARIABLE
from notifications.catalog.designs import BRAND_VARIABLE
from notifications.catalog.digests import DIGEST_VARIABLE
from notifications.catalog.schemas import DataSchema
from notifications.catalog.shipped_types import (
    ShippedType,
    add_missing_types,
    shipped_types,
)
from notifications.catalog.types import UnknownTypeError
from notifications.content import rendering
from notifications.content.reminders import EVENT_VARIABLES
from notifications.models import NotificationType
from notifyproject.db.collections import collection
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")


def change(slug: str, **fields: Any) -> None:
    NotificationType.objects.filter(pk=slug).update(**fields)
    types.invalidate_types()


@each_case("default", shipped_types())
def test_migration_adds_every_shipped_type(default: ShippedType) -> None:
    kind = types.get_type(default.slug)
    given = default.definition
    assert (kind.slug, kind.category, kind.priority) == (
        default.slug,
        given.category,
        given.priority,
    )
    assert list(kind.channels) == given.channels
    assert kind.max_retries == given.max_retries
    assert kind.ttl_seconds == given.ttl_seconds
    assert kind.on_unknown == given.on_unknown
    assert kind.sensitive_variables == frozenset(given.sensitive_variables)
    # The data of a request with its own texts is free.
    schema = DataSchema(schemas.dump(given.schema), SchemaMode.REJECT) if given.schema else None
    assert kind.schema == schema
    assert (schema is not None) == rendering.exists(default.slug)


def test_shipped_type_is_stored_as_a_model() -> None:
    mfa = NotificationType.objects.get(pk="mfa_code")
    assert (mfa.name, mfa.priority, mfa.channels) == ("Login code", "critical", ["email"])
    assert mfa.example_data == {"code": "123456", "expires_in": 5}
    assert mfa.is_active
    mfa.full_clean()


@each_case(
    "name, slug",
    [
        *((name, "mfa_code") for name in ("mfa_code", "MfaCode", "mfaCode", "MFA_CODE")),
        ("CONTEST_REMINDER", "contest_reminder"),
        ("ContestReminder", "contest_reminder"),
        ("VideoReleaseSchedule", "video_release_schedule"),
        ("PaymentConfirmed", "payment_confirmed"),
        ("KycSubmitted", "kyc_submitted"),
        ("Alert", "alert"),
        ("ALERT", "alert"),
    ],
)
def test_type_is_found_by_other_spellings(name: str, slug: str) -> None:
    assert types.get_type(name).slug == slug


@each_case(
    "name, near",
    [
        ("mfa_cod", "mfa_code"),
        ("mfacode", "mfa_code"),
        ("order-shipped", "order_shipped"),
        ("contest_remainder", "contest_reminder"),
        ("PAYMENT", "payment_confirmed"),
    ],
)
def test_unknown_type_suggests_similar_names(name: str, near: str) -> None:
    with pytest.raises(UnknownTypeError) as unknown:
        types.get_type(name)
    assert near in unknown.value.suggestions
    assert len(unknown.value.suggestions) <= 3


@each_case("name", ["", "x", "zzzzzzzz", "$ne", "mfa_code\x00", " mfa_code", "\u00e9", "M" * 64])
def test_name_without_similar_names_is_unknown(name: str) -> None:
    with pytest.raises(UnknownTypeError):
        types.get_type(name)


def test_rules_know_what_the_service_adds_to_data() -> None:
    assert EVENT_VARIABLES | {BRAND_VARIABLE, DIGEST_VARIABLE, RESERVED_VARIABLE} == SUPPLIED


def test_disabled_type_is_unknown() -> None:
    change("mfa_code", is_active=False)
    with pytest.raises(UnknownTypeError) as unknown:
        types.get_type("mfa_code")
    assert "mfa_code" not in unknown.value.suggestions


def test_changed_types_are_kept() -> None:
    change("mfa_code", ttl_seconds=60, channels=["whatsapp"])
    assert add_missing_types() == 0
    assert types.get_type("mfa_code").ttl_seconds == 60
    assert types.get_type("mfa_code").channels == (Channel.WHATSAPP,)


def test_disabled_types_stay_disabled() -> None:
    change("mfa_code", is_active=False)
    add_missing_types()
    with pytest.raises(UnknownTypeError):
        types.get_type("mfa_code")


def test_missing_type_is_added_again() -> None:
    collection("notification_types").delete_one({"_id": "mfa_code"})
    assert add_missing_types() == 1
    assert types.get_type("mfa_code").slug == "mfa_code"


def test_types_are_added_to_an_empty_collection() -> None:
    collection("notification_types").delete_many({})
    assert add_missing_types() == len(shipped_types())
    assert add_missing_types() == 0
