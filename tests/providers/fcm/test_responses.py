"""FCM answers: of the sandbox, of a bare socket, and sender mismatches."""

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    Reach,
    RecipientAction,
    TransientError,
)
from notifyproject.platform.event_loop import run
from providers.fcm import responses
from providers.fcm.provider import FCM
from providers.fcm.responses import RECENT_SUCCESS_PERIOD, RULES, SenderHistory, read_refusal
from providers.http import Response
from tests.support.factories.notifications import FIXED_NOON
from tests.support.fakes import socket_server
from tests.support.providers.fcm import TOKENS, Project, push
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, SHORT, ending, lag


def sandbox_error(
    fcm: FCM, token: str, *, timeout: float = LIMIT, platform: str = "ios"
) -> ProviderError:
    with pytest.raises(ProviderError) as error:
        run(fcm.send(push(token, platform=platform), timeout=timeout))
    return error.value


@pytest.mark.parametrize(
    ("token", "code", "reason", "action"),
    [
        (
            "unregistered-1",
            "UNREGISTERED",
            "Device token invalid",
            RecipientAction.DEACTIVATE,
        ),
        ("invalid-1", "INVALID_ARGUMENT", "Device token malformed", RecipientAction.SUSPECT),
    ],
)
def test_device_error_is_about_the_device(
    project: Project, token: str, code: str, reason: str, action: RecipientAction
) -> None:
    error = sandbox_error(project.fcm(), token)
    assert isinstance(error, InvalidRecipientError)
    assert (error.reason, error.action) == (reason, action)
    assert error.code is FailureCode.INVALID_RECIPIENT
    assert error.response.code == code
    assert len(project.requests()) == 1


@pytest.mark.parametrize(
    ("token", "status"), [("wrong-project-1", 404), ("no-permission-1", 403), ("redirect-1", 302)]
)
def test_configuration_error_is_not_about_the_device(
    project: Project, token: str, status: int
) -> None:
    error = sandbox_error(project.fcm(), token)
    assert type(error) is ProviderUnavailableError
    assert error.scope is None
    assert error.response.status == status
    assert len(project.requests()) == 1


def test_wrong_project_is_not_about_the_device(project: Project) -> None:
    for token in ("device-1", "unregistered-1", "invalid-1"):
        error = sandbox_error(project.fcm(project_id="another"), token)
        assert type(error) is ProviderUnavailableError
        assert error.reason == "Unknown Firebase project or device. (404)"


@each_case(
    "token, kind, reach",
    [
        ("ratelimit-device-1", TransientError, Reach.RECIPIENT),
        ("ratelimit-topic-1", TransientError, Reach.RECIPIENT),
        ("ratelimit-bare-1", TransientError, Reach.UNCERTAIN),
        ("ratelimit-1", TransientError, Reach.ACCOUNT),
        ("bad-device-token-1", InvalidRecipientError, Reach.RECIPIENT),
        ("not-for-topic-1", InvalidRecipientError, Reach.RECIPIENT),
        ("not-registered-1", InvalidRecipientError, Reach.RECIPIENT),
        ("third-party-auth-1", ProviderUnavailableError, Reach.UNCERTAIN),
        ("forbidden-1", ProviderUnavailableError, Reach.UNCERTAIN),
        ("no-permission-1", ProviderUnavailableError, Reach.ACCOUNT),
        ("unauthenticated-1", ProviderUnavailableError, Reach.ACCOUNT),
    ],
)
def test_refusal_has_its_reach(
    project: Project, token: str, kind: type[ProviderError], reach: Reach
) -> None:
    error = sandbox_error(project.fcm(), token)
    assert (type(error), error.reach) == (kind, reach)


def test_apple_key_error_is_scoped_to_the_platform(project: Project) -> None:
    for platform in ("ios", "web"):
        error = sandbox_error(project.fcm(), "third-party-auth-1", platform=platform)
        assert isinstance(error, ProviderUnavailableError)
        assert (error.scope, error.reach) == (platform, Reach.UNCERTAIN)
    assert [request["status"] for request in project.requests()] == [401, 401]
    assert len(project.requests(TOKENS)) == 1, "our own access token is good"


def test_expired_access_token_is_renewed_and_the_push_repeated(project: Project) -> None:
    assert run(project.fcm().send(push("expired-token-1"), timeout=LIMIT)).provider_id
    assert [request["status"] for request in project.requests()] == [401, 200]
    assert len(project.requests(TOKENS)) == 2


def test_refused_access_token_is_renewed_once(project: Project) -> None:
    error = sandbox_error(project.fcm(), "unauthenticated-1")
    assert type(error) is ProviderUnavailableError
    assert (error.response.status, error.response.code) == (401, "UNAUTHENTICATED")
    assert [request["status"] for request in project.requests()] == [401, 401]
    assert len(project.requests(TOKENS)) == 2


@pytest.mark.parametrize(
    ("token", "shortest", "longest"),
    [("ratelimit-1", 5, 5), ("ratelimit-date-1", 3, 6), ("ratelimit-bare-1", 60, 60)],
)
def test_quota_has_a_retry_time(
    project: Project, token: str, shortest: float, longest: float
) -> None:
    error = sandbox_error(project.fcm(), token)
    assert isinstance(error, TransientError)
    assert error.code is FailureCode.RATE_LIMITED
    assert not error.is_ambiguous
    assert error.retry_after is not None
    assert shortest <= error.retry_after <= longest
    assert len(project.requests()) == 1


@pytest.mark.parametrize("token", ["device-1", "slow-1", "dripping-1", "retry-after-1"])
def test_acceptance_has_a_name_and_no_sleep(
    project: Project, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("pyfcm.baseapi.time", SimpleNamespace(sleep=slept.append))
    result = run(project.fcm().send(push(token), timeout=LIMIT))
    assert result.provider_id.startswith("projects/notify-sandbox/messages/")
    assert not result.is_delivered
    assert len(project.requests()) == 1
    assert slept == []


def test_send_succeeds_after_recovery(project: Project) -> None:
    fcm = project.fcm()
    assert [type(sandbox_error(fcm, "flaky-1")) for _ in range(2)] == [TransientError] * 2
    assert run(fcm.send(push("flaky-1"), timeout=LIMIT)).provider_id
    assert [request["status"] for request in project.requests()] == [500, 500, 200]


GOOGLE = "type.googleapis.com"
NAME = b'{"name": "projects/shop/messages/1"}'


def google_error(
    name: str | None = None, *, code: Any = None, text: str = "", field: Any = None
) -> bytes:
    details: list[dict[str, Any]] = []
    if code is not None:
        details.append({"@type": f"{GOOGLE}/google.firebase.fcm.v1.FcmError", "errorCode": code})
    if field is not None:
        details.append(
            {"@type": f"{GOOGLE}/google.rpc.BadRequest", "fieldViolations": [{"field": field}]}
        )
    return json.dumps({"error": {"status": name, "message": text, "details": details}}).encode()


def refusal(
    project: Project,
    answer: bytes,
    *,
    token: str = "device-1",
    timeout: float = LIMIT,
    posts: int = 1,
) -> ProviderError:
    firebase = socket_server.KeepAlive(answer)
    with socket_server.serving(firebase) as server, pytest.raises(ProviderError) as error:
        run(project.fcm(base_url=server.url).send(push(token), timeout=timeout))
    assert len(firebase.requests) == posts
    return error.value


INVALID, MISMATCH, UNKNOWN = "INVALID_ARGUMENT", "SENDER_ID_MISMATCH", "UNREGISTERED"


@each_case(
    "status, body, kind, code",
    [
        (302, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (307, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (400, b"", PermanentError, FailureCode.REJECTED),
        (400, b"<html>", PermanentError, FailureCode.REJECTED),
        (400, google_error(INVALID), PermanentError, FailureCode.REJECTED),
        (400, google_error(INVALID, code=INVALID), PermanentError, FailureCode.REJECTED),
        (400, google_error(INVALID, field="message.data"), PermanentError, FailureCode.REJECTED),
        (400, google_error(INVALID, field="message.tokens"), PermanentError, FailureCode.REJECTED),
        (400, google_error("FAILED", field="message.token"), PermanentError, FailureCode.REJECTED),
        (
            400,
            google_error(INVALID, text="Android message is too big"),
            PermanentError,
            FailureCode.TOO_LARGE,
        ),
        (401, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (401, b"<html>proxy</html>", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (403, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (
            403,
            google_error("PERMISSION_DENIED"),
            ProviderUnavailableError,
            FailureCode.CHANNEL_UNAVAILABLE,
        ),
        (404, b"<html>", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (404, google_error("NOT_FOUND"), ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (
            404,
            google_error("NOT_FOUND", text="UNREGISTERED"),
            ProviderUnavailableError,
            FailureCode.CHANNEL_UNAVAILABLE,
        ),
        (402, b"", PermanentError, FailureCode.REJECTED),
        (413, b"", PermanentError, FailureCode.TOO_LARGE),
        (418, google_error("TEAPOT"), PermanentError, FailureCode.REJECTED),
        (429, b"", TransientError, FailureCode.RATE_LIMITED),
        (429, google_error("RESOURCE_EXHAUSTED"), TransientError, FailureCode.RATE_LIMITED),
        (500, b"", TransientError, FailureCode.PROVIDER_ERROR),
        (502, b"<html>", TransientError, FailureCode.PROVIDER_ERROR),
        (599, b"", TransientError, FailureCode.PROVIDER_ERROR),
        (400, google_error(code="UNAVAILABLE"), TransientError, FailureCode.PROVIDER_ERROR),
        (500, google_error(code="QUOTA_EXCEEDED"), TransientError, FailureCode.RATE_LIMITED),
        (404, google_error(code=UNKNOWN), InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
        (
            400,
            google_error(INVALID, code=UNKNOWN),
            InvalidRecipientError,
            FailureCode.INVALID_RECIPIENT,
        ),
        (
            403,
            google_error(code=MISMATCH),
            ProviderUnavailableError,
            FailureCode.CHANNEL_UNAVAILABLE,
        ),
        (500, google_error(code=UNKNOWN), TransientError, FailureCode.PROVIDER_ERROR),
        (503, google_error(code=MISMATCH), TransientError, FailureCode.PROVIDER_ERROR),
    ],
)
def test_error_code_is_used_before_the_status(
    project: Project, status: int, body: bytes, kind: type[ProviderError], code: FailureCode
) -> None:
    error = refusal(project, socket_server.response(status, body))
    assert type(error) is kind
    assert error.code is code
    assert error.response.status == status
    assert not getattr(error, "is_ambiguous", False)


@each_case(
    "headers, pause",
    [
        (["Retry-After: 7"], 7.0),
        (["Retry-After: 0"], 0.0),
        (["Retry-After: soon"], 60.0),
        (["Retry-After: Thu, 01 Jan 2015 00:00:00 GMT"], 60.0),
        (["Retry-After: 999999999"], 86_400.0),
        ([], 60.0),
    ],
)
def test_quota_without_readable_time_waits_a_minute(
    project: Project, headers: list[str], pause: float
) -> None:
    body = google_error(code="QUOTA_EXCEEDED")
    error = refusal(project, socket_server.response(429, body, *headers))
    assert isinstance(error, TransientError)
    assert error.retry_after == pause


def test_overload_without_time_has_no_pause(project: Project) -> None:
    overloaded = google_error("UNAVAILABLE", code="UNAVAILABLE")
    for headers, pause in (([], None), (["Retry-After: 9"], 9.0)):
        error = refusal(project, socket_server.response(503, overloaded, *headers))
        assert isinstance(error, TransientError)
        assert error.retry_after == pause


@each_case(
    "status, body",
    [
        *((200, body) for body in (b"", b"[]", b"null", b"{}", b"<html>", b'{"name": ""}')),
        *((200, body) for body in (b'{"name": 7}', b'{"name": null}', b"\xff", b"[" * 10_000)),
        *((status, NAME) for status in (201, 202, 206, 299)),
    ],
)
def test_undocumented_success_is_ambiguous(project: Project, status: int, body: bytes) -> None:
    error = refusal(project, socket_server.response(status, body))
    assert type(error) is TransientError
    assert error.is_ambiguous


@each_case(
    "body",
    [
        b"[]",
        b'{"error": null}',
        b'{"error": []}',
        b'{"error": "no"}',
        b'{"error": {}}',
        b'{"error": {"status": 7, "message": {}, "details": {}}}',
        b'{"error": {"details": [1, null, {}, {"@type": 7}]}}',
        google_error(code=7),
        google_error(code={"a": 1}),
        google_error(INVALID, field=7),
        google_error(INVALID, field={}),
        b'{"error": {"details": [{"@type": "x/google.rpc.BadRequest", "fieldViolations": {}}]}}',
        b"\xff\xfe",
        b"[" * 10_000,
    ],
)
def test_undocumented_body_is_classified_by_status(project: Project, body: bytes) -> None:
    assert type(refusal(project, socket_server.response(400, body))) is PermanentError
    assert type(refusal(project, socket_server.response(404, body))) is ProviderUnavailableError


def test_only_googles_401_renews_the_access_token(project: Project) -> None:
    refusal(project, socket_server.response(401, b"<html>a proxy wants a password</html>"))
    assert len(project.requests(TOKENS)) == 1
    refusal(project, socket_server.response(401, google_error("UNAUTHENTICATED")), posts=2)
    assert len(project.requests(TOKENS)) == 2


def test_answer_after_a_new_access_token_is_classified(project: Project) -> None:
    answers = [
        socket_server.response(401, google_error("UNAUTHENTICATED")),
        socket_server.response(404, google_error(code=UNKNOWN)),
    ]

    def firebase(connection: Any) -> None:
        while answers and socket_server.read_request(connection):
            connection.sendall(answers.pop(0))

    with socket_server.serving(firebase) as server, pytest.raises(InvalidRecipientError):
        run(project.fcm(base_url=server.url).send(push(), timeout=LIMIT))
    assert answers == []


def test_time_limit_covers_both_requests(project: Project) -> None:
    slow_refusal = socket_server.response(401, google_error("UNAUTHENTICATED"))

    def firebase(connection: Any) -> None:
        while socket_server.read_request(connection):
            lag(0.6 * SHORT)
            connection.sendall(slow_refusal)

    with (
        socket_server.serving(firebase) as server,
        pytest.raises(TransientError) as error,
        ending(),
    ):
        # Enough for the first answer, and not for the second.
        run(project.fcm(base_url=server.url).send(push(), timeout=SHORT))
    assert error.value.code is FailureCode.TIMEOUT


def test_device_token_is_redacted(project: Project) -> None:
    token = "dQw4w9WgXcQ:APA91bH"
    body = google_error(INVALID, text=f"{token} is not a valid FCM registration token")
    error = refusal(project, socket_server.response(400, body), token=token)
    assert isinstance(error, InvalidRecipientError)
    assert error.action is RecipientAction.SUSPECT
    assert "[token] is not a valid" in error.response.excerpt
    assert token not in f"{error!r} {error.response!r} {error.reason}"


def test_rules_are_readable_and_only_unregistered_deactivates() -> None:
    assert len({row.description for row in RULES}) == len(RULES)
    assert all(row.reason[0].isupper() for row in RULES)
    condemning = [row for row in RULES if row.action is RecipientAction.DEACTIVATE]
    assert [row.code for row in condemning] == ["UNREGISTERED"]


SECOND = timedelta(seconds=1)


def mismatch(fcm: FCM, token: str = "wrong-sender-1") -> ProviderError:
    with pytest.raises(ProviderError) as error:
        run(fcm.send(push(token), timeout=LIMIT))
    return error.value


def test_mismatch_at_an_unproven_project_is_of_unknown_cause(project: Project) -> None:
    error = mismatch(project.fcm())
    assert type(error) is ProviderUnavailableError
    assert (error.scope, error.reach) == (None, Reach.UNCERTAIN)
    assert (error.response.status, error.response.code) == (403, "SENDER_ID_MISMATCH")


def test_mismatch_at_a_proven_project_is_about_the_token(project: Project) -> None:
    fcm = project.fcm()
    run(fcm.send(push("device-1"), timeout=LIMIT))
    error = mismatch(fcm)
    assert isinstance(error, InvalidRecipientError)
    assert (error.action, error.reach) == (RecipientAction.SUSPECT, Reach.UNCERTAIN)
    assert error.reason == "Device token belongs to another Firebase project"


@each_case("token", ["unregistered-1", "invalid-1", "ratelimit-1", "bad-field-1"])
def test_other_refusal_proves_nothing(project: Project, token: str) -> None:
    fcm = project.fcm()
    mismatch(fcm, token)
    assert isinstance(mismatch(fcm), ProviderUnavailableError)


def test_proof_lasts_an_hour() -> None:
    assert timedelta(hours=1) == RECENT_SUCCESS_PERIOD
    sender = SenderHistory()
    assert not sender.is_proven(now=FIXED_NOON)
    sender.record_accepted(now=FIXED_NOON)
    end = FIXED_NOON + RECENT_SUCCESS_PERIOD
    assert sender.is_proven(now=end)
    assert not sender.is_proven(now=end + SECOND)


def test_proofs_may_come_out_of_order() -> None:
    sender = SenderHistory()
    sender.record_accepted(now=FIXED_NOON + RECENT_SUCCESS_PERIOD)
    sender.record_accepted(now=FIXED_NOON)
    assert sender.is_proven(now=FIXED_NOON + 2 * RECENT_SUCCESS_PERIOD)


def test_lasting_fault_of_the_project_is_certain() -> None:
    """Answers that Google gives for credentials, permissions, and the project's quota."""
    certain = {row.description for row in RULES if (row.reach or row.kind.reach) is Reach.ACCOUNT}
    assert {
        "429 about the quota of the project",
        "401 UNAUTHENTICATED, again with a new access token",
        "403 with a reason such as IAM_PERMISSION_DENIED or SERVICE_DISABLED",
        "403 with a text about a missing permission",
    } <= certain


GOOGLE = "type.googleapis.com/google.rpc"
PER_MINUTE = (
    "Quota exceeded for quota metric 'Send requests' and limit 'Send requests per minute' of "
    "service 'fcm.googleapis.com' for consumer 'project_number:{}'."
)


def quota_failure(subject: str, description: str) -> dict[str, Any]:
    violations = [{"subject": subject, "description": description}]
    return {"@type": f"{GOOGLE}.QuotaFailure", "violations": violations}


def error_info(**metadata: str) -> dict[str, Any]:
    return {"@type": f"{GOOGLE}.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED", "metadata": metadata}


@each_case(
    "text, details, owner",
    [
        # https://github.com/firebase/firebase-admin-go/issues/719
        (PER_MINUTE.format("123"), [error_info(quota_limit="SendsPerMinutePerProject")], "project"),
        ("", [error_info(quota_limit="SendsPerMinutePerProject")], "project"),
        (PER_MINUTE.format("device-shop"), [], "project"),
        ("", [quota_failure("projects/device-shop", "Send requests per minute")], "project"),
        ("", [quota_failure("project:token-9", "")], "project"),
        # https://github.com/rails/action_push_native/pull/129
        ("", [quota_failure("project:123456", "Message rate limit exceeded for device")], "device"),
        ("", [quota_failure("device:dQw4w9WgXcQ", "")], "device"),
        ("", [error_info(quota_limit="SendsPerMinutePerDevice")], "device"),
        # https://github.com/binwiederhier/ntfy/issues/289
        ("Topic quota exceeded.", [], "device"),
        # https://github.com/jlcvp/fcm-node/issues/6
        ("TopicsMessageRateExceeded", [], "device"),
        ("DEVICE_MESSAGE_RATE_EXCEEDED", [], "device"),
        ("", [quota_failure("project:1", "DeviceMessageRateExceeded")], "device"),
        ("", [quota_failure("project:device_Shop", "SEND_REQUESTS_PER_MINUTE")], "project"),
        ("Device message rate exceeded.", [], "device"),
        ("Resource has been exhausted (e.g. check quota).", [], None),
        ("", [], None),
        ("", [{"@type": f"{GOOGLE}.QuotaFailure", "violations": "not a list"}], None),
        ("", [{"@type": f"{GOOGLE}.QuotaFailure", "violations": [7, {"subject": 1}]}], None),
        ("", [error_info(quota_limit="7")], None),
    ],
)
def test_quota_tells_its_owner(text: str, details: list[Any], owner: str | None) -> None:
    body = {"error": {"code": 429, "message": text, "details": details}}
    refusal = read_refusal(Response(status=429, headers={}, body=json.dumps(body).encode()))
    assert refusal.quota == owner
    error = build(refusal.status, body)
    reach = {"project": Reach.ACCOUNT, "device": Reach.RECIPIENT, None: Reach.UNCERTAIN}[owner]
    own = FailureCode.RECIPIENT_RATE_LIMITED if owner == "device" else FailureCode.RATE_LIMITED
    assert isinstance(error, TransientError)
    assert (error.reach, error.code, error.retry_after) == (reach, own, 60)


def build(status: int, body: Any) -> ProviderError:
    return responses.classify_response(
        Response(status=status, headers={}, body=json.dumps(body).encode()),
        sender=SenderHistory(),
        token="t",
        scope="ios",
        now=FIXED_NOON,
    )


@each_case(
    "reason, kind",
    [
        *((text, InvalidRecipientError) for text in ("BadDeviceToken", "DeviceTokenNotForTopic")),
        *((text, InvalidRecipientError) for text in ("ExpiredToken", "Unregistered")),
        ("TooManyRequests", TransientError),
        ("PayloadEmpty", PermanentError),
        ("PayloadTooLarge", PermanentError),
        ("BadCollapseId", PermanentError),
        ("a new reason", PermanentError),
        *((text, TransientError) for text in ("InternalServerError", "Shutdown")),
    ],
)
@each_case("text", ["", "Request contains an invalid argument."])
def test_refusal_of_apple_is_about_the_device_or_the_message(
    reason: str, kind: type[ProviderError], text: str
) -> None:
    details = [
        {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": "INVALID_"},
        {"@type": "type.googleapis.com/google.firebase.fcm.v1.ApnsError", "reason": reason},
    ]
    found = {"status": "INVALID_ARGUMENT", "message": text, "details": details}
    error = build(400, {"error": found})
    assert (type(error), error.reach) == (kind, Reach.RECIPIENT)


@each_case(
    "reason", ["TopicDisallowed", "BadTopic", "ExpiredProviderToken", "InvalidProviderToken"]
)
def test_refusal_of_apple_about_the_key_is_no_fault_of_the_device(reason: str) -> None:
    details = [{"@type": "type.googleapis.com/google.firebase.fcm.v1.ApnsError", "reason": reason}]
    text = "Request contains an invalid argument."
    error = build(
        400, {"error": {"status": "INVALID_ARGUMENT", "message": text, "details": details}}
    )
    assert isinstance(error, ProviderUnavailableError)
    assert (error.scope, error.reach) == ("ios", Reach.UNCERTAIN)


@each_case(
    "status, fields, kind",
    [
        (404, {"status": "UNREGISTERED"}, InvalidRecipientError),
        (
            404,
            {
                "status": "NOT_FOUND",
                "details": [
                    {
                        "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
                        "errorCode": "unregistered",
                    }
                ],
            },
            InvalidRecipientError,
        ),
        (
            401,
            {
                "status": "UNAUTHENTICATED",
                "message": "Auth error from APNS or Web Push Service",
            },
            ProviderUnavailableError,
        ),
    ],
)
def test_code_is_found_in_the_status_or_the_text(
    status: int, fields: dict[str, Any], kind: type[ProviderError]
) -> None:
    error = build(status, {"error": fields})
    assert type(error) is kind
    assert error.reach is not Reach.ACCOUNT, "one device stops no other"


@each_case(
    "text, kind",
    [
        ("Request contains an invalid argument.", InvalidRecipientError),
        ("Invalid argument.", InvalidRecipientError),
        ("Invalid value at 'message.data[0].value' (TYPE_STRING), 12", PermanentError),
        ("Invalid value at 'message.token' (TYPE_STRING), 1", InvalidRecipientError),
        ("NotRegistered", InvalidRecipientError),
        ("APNS payload size exceeds maximum 4096 bytes", PermanentError),
        ("Invalid argument: message.android.ttl", PermanentError),
    ],
)
def test_invalid_argument_without_a_field_is_the_token(
    text: str, kind: type[ProviderError]
) -> None:
    error = build(400, {"error": {"status": "INVALID_ARGUMENT", "message": text}})
    assert type(error) is kind


@each_case("text", ["NotRegistered", "Not registered", "Device is notRegistered."])
def test_unregistered_device_without_a_code_has_a_soft_bounce(text: str) -> None:
    error = build(404, {"error": {"status": "NOT_FOUND", "message": text}})
    assert isinstance(error, InvalidRecipientError)
    assert (error.action, error.reach) == (RecipientAction.SUSPECT, Reach.RECIPIENT)


@each_case(
    "status, error, reach",
    [
        (404, {"status": "NOT_FOUND", "message": "Requested entity was not found."}, "uncertain"),
        (404, None, "account"),
        (403, {"status": "PERMISSION_DENIED", "message": "Forbidden"}, "uncertain"),
        (403, None, "uncertain"),
        (
            403,
            {"message": "Permission 'cloudmessaging.messages.create' denied on resource 'x'."},
            "account",
        ),
        (403, {"message": "FCM API has not been used in project 1 before."}, "account"),
        (403, {"message": "The caller does not have permission"}, "account"),
        (401, {"status": "UNAUTHENTICATED"}, "account"),
    ],
)
def test_reach_of_an_unavailable_channel(status: int, error: Any, reach: str) -> None:
    found = build(status, {"error": error} if error else "<html>")
    assert isinstance(found, ProviderUnavailableError)
    assert found.reach == reach
