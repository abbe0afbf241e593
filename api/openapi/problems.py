"""An example of every problem an operation may answer with, made by the code that makes them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
from bson import ObjectId
from django.core.exceptions import PermissionDenied
from django.http import QueryDict
from pymongo.errors import PyMongoError
from rest_framework import exceptions

from access.clients.authentication import TestKeyError
from callbacks.outbox import DISABLED_REASON
from notifications.intake.requests import AlreadyNotifiedError, KeyReusedError, OverloadedError
from notifications.resend import actions
from notifications.validation import FieldProblem, InvalidRequestError

from ..http import body as http_body
from ..http import idempotency, query
from ..http.problems import ApiError, not_found, to_api_error, validation_failed
from ..notifications import filters
from ..types.schemas import NothingRequest
from .wording import IDS, NOTIFICATION

Operation = Mapping[str, Any]
WAIT = 17
MANY = frozenset({"createNotifications", "createBroadcast"})
"""Operations that take a larger body."""
GONE = actions.SensitiveDataDestroyedError()
REMOVED = actions.ContentRemovedError(datetime(2026, 7, 1, tzinfo=UTC))
CONFLICTS: Mapping[str, Sequence[tuple[str, str]]] = {
    "cancelNotification": [("not_possible", "Nothing of it is pending any more.")],
    "retryNotification": [
        ("not_possible", "None of these channels has failed."),
        (GONE.code, str(GONE)),
        (REMOVED.code, str(REMOVED)),
    ],
    "resendNotification": [
        ("not_possible", "The person was erased, and what it said with them."),
        (GONE.code, str(GONE)),
        (REMOVED.code, str(REMOVED)),
    ],
    "rescheduleNotification": [
        ("not_possible", "It is too late: something of it was sent or tried, or it has ended.")
    ],
    "pauseBroadcast": [("not_possible", "It is not running any more.")],
    "resumeBroadcast": [("not_possible", "It is not paused.")],
    "cancelBroadcast": [("not_possible", "It has ended, and nothing of it is waiting to be sent.")],
    "rotateCallbackSecret": [
        (
            "too_many_secrets",
            "It was replaced too often within a day: the ones before it still sign.",
        )
    ],
    "replayCallbackDelivery": [
        ("still_pending", "It has not been told yet, and is tried again by itself."),
        ("callback_disabled", DISABLED_REASON),
    ],
    "testCallback": [("callback_disabled", DISABLED_REASON)],
    "liftSuppression": [
        (
            "persons_own_wish",
            "The person does not want it: name unsubscribed or complaint as the reason.",
        )
    ],
    "createTemplateVersion": [
        ("busy", "Too many versions are made at the same time: try again."),
    ],
}


def problems_of(
    operation: Operation,
    *,
    body: type[msgspec.Struct] | None,
    example: Any,
    is_live_only: bool,
) -> Mapping[int, Sequence[ApiError]]:
    """Return an operation's problems by status; ``example`` is a body that it takes.

    ``is_live_only``: it refuses test keys.
    """
    name = operation["operationId"]
    asked = [p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"]
    has_key = any(p["name"] == idempotency.HEADER for p in operation.get("parameters", ()))
    limit = http_body.MAX_BYTES_BULK if name in MANY else http_body.MAX_BYTES
    known: dict[int, list[ApiError]] = {
        400: [*_malformed(asked, takes_body="415" in operation["responses"], has_key=has_key)],
        401: [to_api_error(exceptions.NotAuthenticated())],
        403: [to_api_error(PermissionDenied())],
        404: [not_found()],
        409: [ApiError(status=409, code=c, detail=d) for c, d in CONFLICTS.get(name, ())],
        413: [raised(http_body.read_raw, _Long, limit=limit)],
        415: [to_api_error(exceptions.UnsupportedMediaType("text/plain"))],
        421: [_elsewhere()],
        422: [*_invalid(operation, body, example, asked)],
        429: [to_api_error(exceptions.Throttled(wait=WAIT))],
        503: [to_api_error(PyMongoError())],
    }
    if is_live_only:
        known[403] += [to_api_error(TestKeyError())]
    if name == "createNotification":
        known[409] = [to_api_error(AlreadyNotifiedError(ObjectId(NOTIFICATION)))]
    if name == "createNotifications":
        known[503] += [to_api_error(OverloadedError(timedelta(seconds=30)))]
    if has_key:
        known[422] += [to_api_error(KeyReusedError())]
    return known


def raised(call: Callable[..., Any], *arguments: Any, **named: Any) -> ApiError:
    """Return the problem that a call raises; raises AssertionError if it raises none."""
    try:
        call(*arguments, **named)
    except (ApiError, InvalidRequestError) as error:
        return to_api_error(error)
    raise AssertionError("this is no problem")


_Long = SimpleNamespace(META={"CONTENT_LENGTH": "99999999"})
_Nothing = SimpleNamespace(META={"CONTENT_LENGTH": "0"})


def _malformed(asked: Sequence[str], *, takes_body: bool, has_key: bool) -> Iterator[ApiError]:
    if takes_body:
        yield raised(http_body.decode, b'{"type": ')
        yield raised(http_body.read_body, _Nothing)
    else:
        yield raised(query.reject_unknown, QueryDict("colour=red"), allowed=())
    if "cursor" in asked:
        yield raised(filters.parse, QueryDict("cursor=nonsense"), client_id=ObjectId(NOTIFICATION))
    if has_key:
        yield raised(
            idempotency.optional_key, SimpleNamespace(headers={idempotency.HEADER: "a key"})
        )


def _invalid(
    operation: Operation, body: type[msgspec.Struct] | None, example: Any, asked: Sequence[str]
) -> Iterator[ApiError]:
    if body is not None:
        yield raised(http_body.convert, {**example, "colour": "red"}, body)
    elif "limit" in asked:
        yield raised(filters.parse, QueryDict("limit=0"), client_id=ObjectId(NOTIFICATION))
    elif asked:
        yield validation_failed(
            [FieldProblem(f"/{asked[0]}", "invalid", "Not a value of this parameter.")]
        )
    elif operation["operationId"] == "publishTemplateVersion":
        yield raised(http_body.convert, {"colour": "red"}, NothingRequest)
    elif operation["operationId"] == "joinTopic":
        expected = "A topic has a-z, 0-9, _ and -, begins with none of the last two, at most 64."
        yield validation_failed([FieldProblem("", "invalid_topic", expected)])


def _elsewhere() -> ApiError:
    detail = "Streams have a process of their own: https://stream.example.com/api/v1/inbox/stream"
    return ApiError(status=421, code="not_here", detail=detail)


def view_of(problem: ApiError, *, path: str) -> dict[str, Any]:
    """Return a problem as it is answered at ``path``."""
    request: Any = SimpleNamespace(path=path, request_id=IDS["request_id"])
    view: dict[str, Any] = msgspec.to_builtins(problem.body(request))
    return view
