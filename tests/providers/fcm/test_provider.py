"""Push by FCM: answers that the sandbox does not give, said by a bare socket."""

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


def said(name: str | None = None, *, code: Any = None, text: str = "", field: Any = None) -> bytes:
    """Return an error in Google's form."""
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
    """Return the error an answer is, after so many POSTs."""
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
        (400, said(INVALID), PermanentError, FailureCode.REJECTED),
        (400, said(INVALID, code=INVALID), PermanentError, FailureCode.REJECTED),
        (400, said(INVALID, field="message.data"), PermanentError, FailureCode.REJECTED),
        (400, said(INVALID, field="message.tokens"), PermanentError, FailureCode.REJECTED),
        (400, said("FAILED", field="message.token"), PermanentError, FailureCode.REJECTED),
        (
            *(400, said(INVALID, text="Android message is too big")),
            *(PermanentError, FailureCode.TOO_LARGE),
        ),
        (401, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (401, b"<html>proxy</html>", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (403, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (403, said("PERMISSION_DENIED"), ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (404, b"<html>", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (404, said("NOT_FOUND"), ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (
            *(404, said("NOT_FOUND", text="UNREGISTERED")),
            *(ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        ),
        (402, b"", PermanentError, FailureCode.REJECTED),
        (413, b"", PermanentError, FailureCode.TOO_LARGE),
        (418, said("TEAPOT"), PermanentError, FailureCode.REJECTED),
        (429, b"", TransientError, FailureCode.RATE_LIMITED),
        (429, said("RESOURCE_EXHAUSTED"), TransientError, FailureCode.RATE_LIMITED),
        (500, b"", TransientError, FailureCode.PROVIDER_ERROR),
        (502, b"<html>", TransientError, FailureCode.PROVIDER_ERROR),
        (599, b"", TransientError, FailureCode.PROVIDER_ERROR),
        (400, said(code="UNAVAILABLE"), TransientError, FailureCode.PROVIDER_ERROR),
        (500, said(code="QUOTA_EXCEEDED"), TransientError, FailureCode.RATE_LIMITED),
        (404, said(code=UNKNOWN), InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
        (400, said(INVALID, code=UNKNOWN), InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
        (403, said(code=MISMATCH), ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (500, said(code=UNKNOWN), TransientError, FailureCode.PROVIDER_ERROR),
        (503, said(code=MISMATCH), TransientError, FailureCode.PROVIDER_ERROR),
    ],
)
def test_fcms_own_code_comes_first_and_then_the_status(
    project: Project, status: int, body: bytes, kind: type[ProviderError], code: FailureCode
) -> None:
    error = refusal(project, socket_server.response(status, body))
    assert type(error) is kind
    assert error.code is code
    assert error.response is not None
    assert error.response.status == status
    assert not getattr(error, "is_ambiguous", False)


def test_a_token_that_only_the_text_complains_about_is_suspect(project: Project) -> None:
    text = "The registration token is not a valid FCM registration token"
    error = refusal(project, socket_server.response(400, said(INVALID, code=INVALID, text=text)))
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
def test_a_quota_without_a_time_that_can_be_read_is_a_minute(
    project: Project, headers: list[str], pause: float
) -> None:
    error = refusal(project, socket_server.response(429, said(code="QUOTA_EXCEEDED"), *headers))
    assert isinstance(error, TransientError)
    assert error.retry_after == pause


def test_an_overload_without_a_time_leaves_the_time_to_us(project: Project) -> None:
    overloaded = said("UNAVAILABLE", code="UNAVAILABLE")
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
def test_another_success_than_the_documented_one_may_mean_that_it_went(
    project: Project, status: int, body: bytes
) -> None:
    error = refusal(project, socket_server.response(status, body))
    assert type(error) is TransientError
    assert error.is_ambiguous


@pytest.mark.parametrize(
    "body",
    [
        *(b"[]", b'{"error": null}', b'{"error": []}', b'{"error": "no"}', b'{"error": {}}'),
        b'{"error": {"status": 7, "message": {}, "details": {}}}',
        b'{"error": {"details": [1, null, {}, {"@type": 7}]}}',
        said(code=7),
        said(code={"a": 1}),
        said(INVALID, field=7),
        said(INVALID, field={}),
        b'{"error": {"details": [{"@type": "x/google.rpc.BadRequest", "fieldViolations": {}}]}}',
        b"\xff\xfe",
        b"[" * 10_000,
    ],
)
def test_a_body_google_does_not_document_is_no_defect_of_ours(
    project: Project, body: bytes
) -> None:
    assert type(refusal(project, socket_server.response(400, body))) is PermanentError
    assert type(refusal(project, socket_server.response(404, body))) is ProviderUnavailableError


def test_only_googles_own_401_is_about_our_access_token(project: Project) -> None:
    refusal(project, socket_server.response(401, b"<html>a proxy wants a password</html>"))
    assert len(project.requests(TOKENS)) == 1
    refusal(project, socket_server.response(401, said("UNAUTHENTICATED")), posts=2)
    assert len(project.requests(TOKENS)) == 2


def test_what_follows_a_new_access_token_is_judged_like_any_answer(project: Project) -> None:
    answers = [
        socket_server.response(401, said("UNAUTHENTICATED")),
        socket_server.response(404, said(code=UNKNOWN)),
    ]

    def firebase(connection: Any) -> None:
        while answers and socket_server.read_request(connection):
            connection.sendall(answers.pop(0))

    with socket_server.serving(firebase) as server, pytest.raises(InvalidRecipientError):
        project.fcm(base_url=server.url).send(push(), timeout=LIMIT)
    assert answers == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_gets_neither_the_push_nor_the_access_token(
    project: Project, status: int
) -> None:
    elsewhere = socket_server.KeepAlive(socket_server.response(200, NAME))
    with socket_server.serving(elsewhere) as other:
        error = refusal(project, socket_server.response(status, b"", f"Location: {other.url}/v1"))
        assert other.connections == 0
    assert type(error) is ProviderUnavailableError


def test_a_firebase_that_is_not_there_got_nothing(project: Project) -> None:
    with pytest.raises(TransientError) as error:
        project.fcm(base_url="http://127.0.0.1:1").send(push(), timeout=LIMIT)
    assert not error.value.is_ambiguous
    assert error.value.code is FailureCode.CONNECTION_FAILED


def test_one_time_limit_is_over_everything_a_send_does(project: Project) -> None:
    slow_refusal = socket_server.response(401, said("UNAUTHENTICATED"))

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


def test_the_devices_token_is_in_nothing_that_is_kept(project: Project) -> None:
    token = "dQw4w9WgXcQ:APA91bH"
    body = said(INVALID, text=f"{token} is not a valid FCM registration token")
    error = refusal(project, socket_server.response(400, body), token=token)
    assert error.response is not None
    assert "[token] is not a valid" in error.response.excerpt
    assert token not in f"{error!r} {error.response!r} {error.reason}"


def test_the_table_is_fit_to_be_read_by_people() -> None:
    assert len({row.description for row in RULES}) == len(RULES)
    assert all(row.reason[0].isupper() for row in RULES)
    condemning = [row for row in RULES if row.action is RecipientAction.DEACTIVATE]
    assert [row.code for row in condemning] == ["UNREGISTERED"]
