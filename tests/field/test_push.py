"""Pushes as phones and browsers show them.

Documents: Apple's "Generating a remote notification" (an alert without ``sound`` is silent; data
for an app in the background needs ``content-available``), and FCM's ``AndroidNotification``.
Each body is checked against FCM's own schema.

Reports: https://github.com/laravel-notification-channels/fcm/issues/30,
https://github.com/plokko/firebase-php/issues/21 (no sound on iOS),
https://github.com/fechanique/cordova-plugin-fcm/issues/458 (no sound by the common fields).
"""

import json
from datetime import timedelta
from typing import Any

import pytest

from domain.errors import (
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from domain.states import Priority
from providers.contract import Message
from providers.fcm.responses import SenderHistory, classify_response
from providers.http import Response
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.fcm import push
from tests.support.providers.fcm_schema import built, check

LOUD = [Priority.CRITICAL, Priority.HIGH, Priority.NORMAL]
PAYLOADS: list[dict[str, Any] | None] = [
    None,
    {"order": 7},
    {"sound": "alarm.caf", "badge": 3},
    {"aps": {"sound": "alarm.caf"}},
]


def body(priority: Priority = Priority.NORMAL, **fields: Any) -> Any:
    message = Message(**{"subject": "Paid", "text": "It has arrived."} | fields)
    return check(built(push(message=message, priority=priority), now=FIXED_NOON))


@pytest.mark.parametrize("priority", LOUD)
@pytest.mark.parametrize("payload", PAYLOADS)
def test_iphone_plays_a_sound(priority: Priority, payload: dict[str, Any] | None) -> None:
    aps = body(priority, payload=payload)["apns"]["payload"]["aps"]
    assert aps == {"sound": "default"}


@pytest.mark.parametrize(
    "fields",
    [
        {"subject": None},
        {"text": ""},
        {"image_url": "https://cdn.example.com/a.png"},
        {"deep_link": "https://example.com/1"},
    ],
)
def test_every_visible_push_plays_a_sound(fields: dict[str, Any]) -> None:
    found = body(**fields)
    assert found["apns"]["payload"]["aps"]["sound"] == "default"
    assert found["android"]["notification"]["default_sound"] is True


def test_low_priority_is_silent_everywhere() -> None:
    found = body(Priority.LOW)
    assert found["apns"]["payload"]["aps"] == {"interruption-level": "passive"}
    assert "default_sound" not in found["android"]["notification"]
    assert found["webpush"]["notification"]["silent"] is True


@pytest.mark.parametrize("priority", Priority)
def test_data_reaches_an_app_in_the_background_without_a_sound(priority: Priority) -> None:
    found = body(priority, subject=None, text="", payload={"sync": True})
    assert "notification" not in found
    assert found["apns"]["headers"]["apns-priority"] == "5", "Apple refuses 10 without an alert"
    assert found["apns"]["payload"]["aps"] == {"content-available": 1}
    assert "default_sound" not in found["android"].get("notification", {})
    assert "silent" not in found["webpush"].get("notification", {})


def response(status: int, error: dict[str, Any]) -> Response:
    return Response(status=status, headers={}, body=json.dumps({"error": error}).encode())


FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"


def fcm_error(code: str) -> dict[str, Any]:
    return {"@type": FCM_ERROR, "errorCode": code}


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        # https://github.com/rails/action_push_native/pull/141
        (
            400,
            {
                "message": "The registration token is not a valid FCM registration token",
                "status": "INVALID_ARGUMENT",
                "details": [fcm_error("INVALID_ARGUMENT")],
            },
            InvalidRecipientError,
        ),
        # https://github.com/xtrinch/fcm-django/issues/223: no fault of the device.
        (
            400,
            {
                "message": "Invalid value at 'message.data[0].value' (TYPE_STRING), 12",
                "status": "INVALID_ARGUMENT",
                "details": [
                    fcm_error("INVALID_ARGUMENT"),
                    {"@type": BAD_REQUEST, "fieldViolations": [{"field": "message.data[0].value"}]},
                ],
            },
            PermanentError,
        ),
        (
            400,
            {"message": "Android message is too big", "status": "INVALID_ARGUMENT"},
            PermanentError,
        ),
        # https://github.com/firebase/firebase-admin-java/issues/972
        (
            404,
            {
                "message": "Requested entity was not found.",
                "status": "NOT_FOUND",
                "details": [fcm_error("UNREGISTERED")],
            },
            InvalidRecipientError,
        ),
        # https://github.com/mozilla-services/autopush/issues/1348: no details.
        (
            404,
            {"message": "Requested entity was not found.", "status": "NOT_FOUND"},
            InvalidRecipientError,
        ),
        # https://github.com/Edujugon/PushNotification/issues/99
        (404, {"message": "NotRegistered", "status": "NOT_FOUND"}, InvalidRecipientError),
        # https://github.com/firebase/firebase-admin-go/issues/238: not the token's sender.
        (
            403,
            {"message": "The caller does not have permission", "status": "PERMISSION_DENIED"},
            ProviderUnavailableError,
        ),
        # https://github.com/firebase/firebase-admin-go/issues/354
        (
            403,
            {
                "message": "Firebase Cloud Messaging API has not been used in project 297 before.",
                "status": "PERMISSION_DENIED",
            },
            ProviderUnavailableError,
        ),
        # https://github.com/firebase/firebase-admin-node/issues/346
        (
            503,
            {
                "message": "The service is currently unavailable.",
                "status": "UNAVAILABLE",
                "details": [fcm_error("UNAVAILABLE")],
            },
            TransientError,
        ),
    ],
)
def test_reported_answer_has_its_class_at_a_proven_account(
    status: int, error: dict[str, Any], kind: type[ProviderError]
) -> None:
    sender = SenderHistory()
    sender.record_accepted(now=FIXED_NOON)
    found = classify_response(
        response(status, error), sender=sender, token="t", platform="ios", now=FIXED_NOON
    )
    assert type(found) is kind


@pytest.mark.parametrize(
    ("left", "seconds"),
    [
        (timedelta(milliseconds=1500), 1),
        (timedelta(days=90), 2_419_200),
        (timedelta(seconds=-1), 0),
    ],
)
def test_lifetime_is_whole_seconds_of_four_weeks_at_most(left: timedelta, seconds: int) -> None:
    """As in https://github.com/firebase/firebase-admin-node/issues/479 and 2832."""
    request = push(expires_at=FIXED_NOON + left)
    found = check(built(request, now=FIXED_NOON))
    assert found["android"]["ttl"] == f"{seconds}s"
    assert found["webpush"]["headers"]["TTL"] == str(seconds)


def test_copies_replace_each_other_on_every_platform() -> None:
    """As in https://github.com/jlcvp/fcm-node/issues/82: each platform has a key of its own."""
    found = body()
    keys = {
        found["android"]["notification"]["tag"],
        found["apns"]["headers"]["apns-collapse-id"],
        found["webpush"]["notification"]["tag"],
    }
    assert len(keys) == 1
    assert len(keys.pop()) <= 64
