"""FCM answers that the sandbox doesn't give, from a bare socket."""

import json
from typing import Any

import pytest

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from providers.fcm.responses import RULES
from tests.support.fakes import socket_server
from tests.support.providers.fcm import TOKENS, Project, push
from tests.support.waiting import LIMIT, SHORT, ending, lag

GOOGLE = "type.googleapis.com"
NAME = b'{"name": "projects/shop/messages/1"}'


def google_error(
    name: str | None = None, *, code: Any = None, text: str = "", field: Any = None
) -> bytes:
    """Return an error in Google's format."""
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
    """Return the error of a send with this answer."""
    firebase = socket_server.KeepAlive(answer)
    with socket_server.serving(firebase) as server, pytest.raises(ProviderError) as error:
        project.fcm(base_url=server.url).send(push(token), timeout=timeout)
    assert len(firebase.requests) == posts
    return error.value


INVALID, MISMATCH, UNKNOWN = "INVALID_ARGUMENT", "SENDER_ID_MISMATCH", "UNREGISTERED"


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
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
            *(400, google_error(INVALID, text="Android message is too big")),
            *(PermanentError, FailureCode.TOO_LARGE),
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
            *(404, google_error("NOT_FOUND", text="UNREGISTERED")),
            *(ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
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
    assert error.response is not None
    assert error.response.status == status
    assert not getattr(error, "is_ambiguous", False)


def test_token_error_in_the_text_is_suspect(project: Project) -> None:
    text = "The registration token is not a valid FCM registration token"
    error = refusal(
        project, socket_server.response(400, google_error(INVALID, code=INVALID, text=text))
    )
    assert isinstance(error, InvalidRecipientError)
    assert error.action is RecipientAction.SUSPECT


@pytest.mark.parametrize(
    ("headers", "pause"),
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
    error = refusal(
        project, socket_server.response(429, google_error(code="QUOTA_EXCEEDED"), *headers)
    )
    assert isinstance(error, TransientError)
    assert error.retry_after == pause


def test_overload_without_time_has_no_pause(project: Project) -> None:
    overloaded = google_error("UNAVAILABLE", code="UNAVAILABLE")
    for headers, pause in (([], None), (["Retry-After: 9"], 9.0)):
        error = refusal(project, socket_server.response(503, overloaded, *headers))
        assert isinstance(error, TransientError)
        assert error.retry_after == pause


@pytest.mark.parametrize(
    ("status", "body"),
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


@pytest.mark.parametrize(
    "body",
    [
        *(b"[]", b'{"error": null}', b'{"error": []}', b'{"error": "no"}', b'{"error": {}}'),
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
        project.fcm(base_url=server.url).send(push(), timeout=LIMIT)
    assert answers == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_gets_neither_push_nor_access_token(project: Project, status: int) -> None:
    elsewhere = socket_server.KeepAlive(socket_server.response(200, NAME))
    with socket_server.serving(elsewhere) as other:
        error = refusal(project, socket_server.response(status, b"", f"Location: {other.url}/v1"))
        assert other.connections == 0
    assert type(error) is ProviderUnavailableError


def test_refused_connection_is_not_ambiguous(project: Project) -> None:
    with pytest.raises(TransientError) as error:
        project.fcm(base_url="http://127.0.0.1:1").send(push(), timeout=LIMIT)
    assert not error.value.is_ambiguous
    assert error.value.code is FailureCode.CONNECTION_FAILED


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
        project.fcm(base_url=server.url).send(push(), timeout=SHORT)
    assert error.value.code is FailureCode.TIMEOUT


def test_device_token_is_redacted(project: Project) -> None:
    token = "dQw4w9WgXcQ:APA91bH"
    body = google_error(INVALID, text=f"{token} is not a valid FCM registration token")
    error = refusal(project, socket_server.response(400, body), token=token)
    assert error.response is not None
    assert "[token] is not a valid" in error.response.excerpt
    assert token not in f"{error!r} {error.response!r} {error.reason}"


def test_rules_are_readable_and_only_unregistered_deactivates() -> None:
    assert len({row.description for row in RULES}) == len(RULES)
    assert all(row.reason[0].isupper() for row in RULES)
    condemning = [row for row in RULES if row.action is RecipientAction.DEACTIVATE]
    assert [row.code for row in condemning] == ["UNREGISTERED"]
