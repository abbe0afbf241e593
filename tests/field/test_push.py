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
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.content import Content, InterruptionLevel, PushOptions, Recipient
from domain.errors import (
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    Reach,
    TransientError,
)
from domain.states import Priority
from notifications.content.rendering import render_message
from notifications.store.reading import content_of
from notifyproject.settings.environment import read
from providers.contract import Message
from providers.fcm import credentials
from providers.fcm.credentials import refusal_error
from providers.fcm.responses import SenderHistory, classify_response
from providers.fcm.variables import Settings
from providers.http import Response
from tests.support.clients.api import App
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.fcm import push
from tests.support.providers.fcm_schema import built, check
from tests.support.tables import each_case

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


@each_case("priority", LOUD)
@each_case("payload", PAYLOADS)
def test_iphone_plays_a_sound(priority: Priority, payload: dict[str, Any] | None) -> None:
    aps = body(priority, payload=payload)["apns"]["payload"]["aps"]
    assert aps == {"sound": "default"}


@each_case(
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


@each_case("priority", Priority)
@each_case(
    "options, aps, android",
    [
        (PushOptions(sound="alarm.caf"), {"sound": "alarm.caf"}, {"sound": "alarm"}),
        (PushOptions(sound="default"), {"sound": "default"}, {"default_sound": True}),
        (PushOptions(badge=0, sound="none"), {"badge": 0}, {}),
        (
            PushOptions(interruption_level=InterruptionLevel.TIME_SENSITIVE, sound="a.wav"),
            {"interruption-level": "time-sensitive", "sound": "a.wav"},
            {"sound": "a"},
        ),
        (
            PushOptions(android_channel_id="orders", sound="none", badge=7),
            {"badge": 7},
            {"channel_id": "orders"},
        ),
        (
            PushOptions(interruption_level=InterruptionLevel.PASSIVE),
            {"interruption-level": "passive"},
            {},
        ),
    ],
)
def test_options_override_the_priority(
    priority: Priority, options: PushOptions, aps: dict[str, Any], android: dict[str, Any]
) -> None:
    found = body(priority, push=options)
    shown = found["apns"]["payload"]["aps"]
    if priority is Priority.LOW and options.sound == "none":
        aps = {**aps, "interruption-level": "passive"}
    assert shown == aps
    notification = found["android"]["notification"]
    assert {name: notification[name] for name in notification if name != "tag"} == android
    assert found["webpush"]["notification"].get("silent", False) is ("sound" not in aps)


def test_data_has_neither_badge_nor_sound() -> None:
    """Apple allows neither beside ``content-available``."""
    found = body(subject=None, text="", push=PushOptions(badge=3, sound="a.caf"))
    assert found["apns"]["payload"]["aps"] == {"content-available": 1}


def test_low_priority_is_silent_everywhere() -> None:
    found = body(Priority.LOW)
    assert found["apns"]["payload"]["aps"] == {"interruption-level": "passive"}
    assert "default_sound" not in found["android"]["notification"]
    assert found["webpush"]["notification"]["silent"] is True


@each_case("priority", Priority)
def test_data_reaches_an_app_in_the_background_without_a_sound(priority: Priority) -> None:
    found = body(priority, subject=None, text="", payload={"sync": True})
    assert "notification" not in found
    assert found["apns"]["headers"]["apns-priority"] == "5", "Apple refuses 10 without an alert"
    assert found["apns"]["payload"]["aps"] == {"content-available": 1}


@each_case(
    "fields",
    [
        {"payload": {"sync": True}},
        {"payload": {"sync": True}, "push": PushOptions(sound="a.caf", badge=3)},
        {"push": PushOptions(android_channel_id="orders")},
        {"push": PushOptions(interruption_level=InterruptionLevel.PASSIVE)},
        {"image_url": "https://shop.example/a.png"},
        {"deep_link": "https://shop.example/a"},
    ],
)
def test_data_message_has_no_part_of_a_notification(fields: dict[str, Any]) -> None:
    """Any such part makes it a notification: an empty one is shown, and the app isn't called.

    https://github.com/phonegap/phonegap-plugin-push/issues/2769,
    https://github.com/expo/expo/issues/16261, https://github.com/bucketeer-io/bucketeer/issues/1829
    """
    found = body(Priority.HIGH, subject=None, text="", **fields)
    assert "notification" not in found
    assert found["android"] == {"priority": "HIGH"}
    assert found["webpush"].keys() == {"headers"}
    assert found["apns"].keys() == {"headers", "payload"}
    assert found["apns"]["payload"] == {"aps": {"content-available": 1}}
    assert found["apns"]["headers"]["apns-push-type"] == "background"


def test_visible_push_is_an_alert() -> None:
    """https://github.com/zo0r/react-native-push-notification/issues/1199"""
    for fields in ({}, {"subject": None}, {"text": ""}, {"image_url": "https://x.example/a.png"}):
        assert body(**fields)["apns"]["headers"]["apns-push-type"] == "alert"


@each_case(
    "link, expected",
    [
        ("https://google.com", "https://google.com"),
        ("HTTPS://shop.example/A", "https://shop.example/A"),
        ("Https://shop.example/?next=http://x", "https://shop.example/?next=http://x"),
        *((link, None) for link in ("http://x.example", "app://x", "https:x", "/orders/1", "")),
    ],
)
def test_browser_opens_a_secure_link(link: str, expected: str | None) -> None:
    """https://github.com/beste/firebase-php/issues/316"""
    found = body(deep_link=link)
    assert found["webpush"].get("fcm_options", {}).get("link") == expected
    assert "fcm_options" not in found


def response(status: int, error: dict[str, Any], **headers: str) -> Response:
    body = json.dumps({"error": error}).encode()
    return Response(status=status, headers=headers, body=body)


FCM_ERROR = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"


def fcm_error(code: str) -> dict[str, Any]:
    return {"@type": FCM_ERROR, "errorCode": code}


@each_case(
    "status, error, kind",
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
        # https://github.com/STS-Rosario/carpoolear_backend/pull/319
        (
            403,
            {"message": "SenderId mismatch", "status": "PERMISSION_DENIED"},
            InvalidRecipientError,
        ),
        # https://github.com/xtrinch/fcm-django/issues/59
        (
            400,
            {"message": "InvalidRegistration", "status": "INVALID_ARGUMENT"},
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
        # RFC 9110, 15.5.8: a proxy wants credentials, and nothing was sent.
        (407, {}, ProviderUnavailableError),
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
        response(status, error), sender=sender, token="t", scope="ios", now=FIXED_NOON
    )
    assert type(found) is kind


def answered(status: int, error: Any, **headers: str) -> ProviderError:
    """Return the error of an answer to a proven account."""
    sender = SenderHistory()
    sender.record_accepted(now=FIXED_NOON)
    return classify_response(
        response(status, error, **headers), sender=sender, token="t", scope="ios", now=FIXED_NOON
    )


@each_case(
    "status, name",
    [
        (408, None),
        (409, "ABORTED"),
        (425, None),
        (499, "CANCELLED"),
        (500, "UNKNOWN"),
        (502, None),
        (504, "DEADLINE_EXCEEDED"),
    ],
)
def test_request_that_was_given_up_is_repeated(status: int, name: str | None) -> None:
    """https://cloud.google.com/apis/design/errors: these aren't about the message."""
    found = answered(status, {"message": "The operation was aborted.", "status": name})
    assert isinstance(found, TransientError)
    assert not found.is_ambiguous


@each_case(
    "delay, headers, pause",
    [
        ("120s", {}, 120),
        ("0.5s", {}, 0.5),
        ("120s", {"retry-after": "7"}, 7),
        ("120s", {"retry-after": "soon"}, 120),
        ("999999999s", {}, 86_400),
        ("0s", {}, 60),
        ("-5s", {}, 60),
        ("2 minutes", {}, 60),
        ("NaNs", {}, 60),
        (120, {}, 60),
        (None, {}, 60),
    ],
)
def test_pause_may_stand_in_the_answer(delay: Any, headers: dict[str, str], pause: float) -> None:
    """https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto"""
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    found = answered(
        429,
        {"status": "RESOURCE_EXHAUSTED", "details": [fcm_error("QUOTA_EXCEEDED"), info]},
        **headers,
    )
    assert isinstance(found, TransientError)
    assert found.retry_after == pause


@each_case(
    "text",
    ["Project not found or deleted.", "The project 'my-shop' was not found.", "Unknown Project"],
)
def test_missing_project_is_no_fault_of_a_device(text: str) -> None:
    found = answered(404, {"message": text, "status": "NOT_FOUND"})
    assert isinstance(found, ProviderUnavailableError)
    assert found.reach is Reach.UNCERTAIN


@each_case(
    "description, is_clock",
    [
        # https://github.com/googleapis/google-api-php-client/issues/1429
        ("Invalid JWT: Token must be short-lived and in a reasonable timeframe. Check iat.", True),
        # https://github.com/mediafigaro/google-analytics-api-symfony/issues/7
        ("Invalid JWT: Token must be a short-lived token and in a reasonable timeframe", True),
        ("Invalid JWT Signature.", False),
        ("Invalid grant: account not found", False),
        (None, False),
    ],
)
def test_refused_token_tells_a_wrong_clock(description: Any, is_clock: bool) -> None:
    body = {"error": "invalid_grant", "error_description": description}
    answer = Response(status=400, headers={}, body=json.dumps(body).encode())
    found = refusal_error(answer, now=FIXED_NOON)
    assert ("clock" in found.reason) is is_clock
    assert found.response is not None
    assert found.response.code == "invalid_grant"


@each_case(
    "left, seconds",
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


OPTIONS = {
    "sound": "alarm.caf",
    "badge": 3,
    "interruption_level": "time-sensitive",
    "android_channel_id": "orders",
}


def test_options_of_a_request_reach_the_message(app: App) -> None:
    factories.device("phone", user_id="ada")
    content = {"subject": "Paid", "body": "It has arrived.", "push": OPTIONS}
    answer = app.notify(user_id="ada", channels=["push"], recipient={}, content=content)
    assert answer.status_code == 202, answer.content
    shown = app.get(f"/notifications/{answer.json()['id']}").json()
    assert shown["content"]["push"] == OPTIONS
    document = factories.read(ObjectId(answer.json()["id"]))
    message = render_message(
        channel=Channel.PUSH, content=content_of(document), data={}, recipient=Recipient()
    )
    assert message.push == PushOptions(**OPTIONS)


@each_case(
    "options",
    [
        {"sound": ""},
        {"sound": "a b.caf"},
        {"sound": "../a.caf"},
        {"sound": {"critical": 1}},
        {"badge": -1},
        {"badge": "3"},
        {"badge": 1.5},
        {"interruption_level": "critical"},
        {"android_channel_id": "a b"},
        {"unknown": 1},
    ],
)
def test_odd_option_is_a_problem_of_its_field(app: App, options: dict[str, Any]) -> None:
    answer = app.notify(content={"body": "Paid", "push": options})
    assert answer.status_code == 422
    (problem, *_) = answer.json()["errors"]
    assert problem["pointer"].startswith("/content/push")


def _mangled(text: str) -> dict[str, str]:
    """Return a service account as environments have passed it, by the report."""
    return {
        # https://github.com/firebase/firebase-admin-node/issues/385
        "escaped twice": text.replace("\\n", "\\\\n"),
        # https://github.com/beste/laravel-firebase/issues/68
        "line breaks in a value": text.replace("\\n", "\n"),
        "quoted": f"'{text}'",
        "quoted twice": f'"{text}"',
        # https://github.com/openwallet-foundation/didcomm-mediator-credo/pull/76
        "blanks": text.replace("\\n", " "),
        "no line breaks": text.replace("\\n", ""),
        "carriage returns": text.replace("\\n", "\\r\\n"),
        "byte order mark": f"\ufeff{text}",
        "blank lines around": f"\r\n {text}\r\n",
        "indented": json.dumps(json.loads(text or "{}"), indent=2),
    }


WAYS = tuple(_mangled(""))


@each_case("way", WAYS)
@each_case("is_file", [False, True])
def test_service_account_is_read_as_environments_pass_it(
    way: str, is_file: bool, google_account_file: Path, tmp_path: Path
) -> None:
    account = json.loads(google_account_file.read_text())
    text = json.dumps(account | {"token_uri": "https://oauth2.googleapis.com/token"})
    expected = credentials.read_service_account(text)
    source = _mangled(text)[way]
    taken = Settings.of(read({"FCM_CREDENTIALS": source})).FCM_CREDENTIALS
    assert taken == source
    if is_file:
        file = tmp_path / "account.json"
        file.write_text(source)
        source = str(file)
    if is_file and way.startswith("quoted"):
        with pytest.raises(credentials.InvalidCredentialsError):
            credentials.read_service_account(source)
        return
    found = credentials.read_service_account(source)
    assert found.client_email == expected.client_email
    assert found.assertion(now=FIXED_NOON) == expected.assertion(now=FIXED_NOON)


@each_case("source", ["[]", "7", "{", '{"private_key": 7}', "/nowhere", "a\0b", "'{'"])
def test_what_is_no_service_account_is_refused(source: str) -> None:
    with pytest.raises(credentials.InvalidCredentialsError):
        credentials.read_service_account(source)


@each_case(
    "other, missing",
    [
        # https://github.com/beste/firebase-php/issues/374: google-services.json.
        ({"project_info": {"project_id": "x"}, "client": []}, ["client_email", "private_key"]),
        # https://github.com/fastlane-old/supply/issues/79
        ({"installed": {"client_id": "x", "client_secret": "s3cret"}}, ["client_email"]),
        ({"type": "authorized_user", "refresh_token": "s3cret"}, ["client_email"]),
        ({"type": "external_account", "audience": "x"}, ["private_key"]),
        # https://github.com/firebase/firebase-admin-node/issues/2778: an SDK's own names.
        ({"clientEmail": "a@b.example", "privateKey": "s3cret"}, ["client_email", "private_key"]),
        # https://github.com/googleapis/google-auth-library-nodejs/issues/47
        ({"client_email": "", "private_key": "s3cret"}, ["client_email"]),
        ({"client_email": "a@b.example"}, ["private_key"]),
        ({}, ["client_email", "private_key"]),
    ],
)
def test_other_file_than_a_service_account_is_told(
    other: dict[str, Any], missing: list[str]
) -> None:
    source = json.dumps(other)
    with pytest.raises(credentials.InvalidCredentialsError) as error:
        credentials.read_service_account(source)
    assert all(f"no {name}" in str(error.value) for name in missing)
    assert "s3cret" not in str(error.value)


@each_case(
    "text",
    [
        "MessageTooBig",
        "iOS message is too big",
        "APNs payload is too large",
        "Android message is too big",
        "Notification payload exceeds 4096 bytes",
        "Message size limit exceeded",
    ],
)
def test_size_is_the_messages_fault(text: str) -> None:
    """https://github.com/mozilla-services/autopush/pull/1430"""
    answer = response(400, {"code": 400, "message": text, "status": "INVALID_ARGUMENT"})
    error = classify_response(
        answer, sender=SenderHistory(), token="t", scope="ios", now=FIXED_NOON
    )
    assert isinstance(error, PermanentError)
    assert error.code == "too_large"


@pytest.mark.parametrize(
    "text", ["Tom & Jerry's <b>", '"3 < 4" &amp; more', "l\u2019\u00e9t\u00e9 &#39;"]
)
def test_texts_have_no_entities(text: str, templates: Path) -> None:
    """https://github.com/mastodon/mastodon/pull/7592"""
    (templates / "paid").mkdir()
    for part in ("subject", "body", "push_title", "push"):
        (templates / "paid" / f"{part}.txt").write_text("{{ shop }}")
    by_template = Content(template_id="paid", subject=text, body=text)
    for content in (by_template, Content(subject=text, body=text)):
        message = render_message(
            channel=Channel.PUSH, content=content, data={"shop": text}, recipient=Recipient()
        )
        assert (message.subject, message.text) == (text, text)
