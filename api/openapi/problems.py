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
from ..types.schemas import EmptyRequest
from .wording import EXAMPLE_IDS, NOTIFICATION_ID

Operation = Mapping[str, Any]
RETRY_AFTER = 17
BULK_OPERATIONS = frozenset({"createNotifications", "createBroadcast"})
"""Operations that take a larger body."""
SENSITIVE_DATA_DESTROYED = actions.SensitiveDataDestroyedError()
CONTENT_REMOVED = actions.ContentRemovedError(datetime(2026, 7, 1, tzinfo=UTC))
CONFLICTS: Mapping[str, Sequence[tuple[str, str]]] = {
    "cancelNotification": [("not_possible", "Nothing is pending.")],
    "retryNotification": [
        ("not_possible", "No failed channel to retry."),
        (SENSITIVE_DATA_DESTROYED.code, str(SENSITIVE_DATA_DESTROYED)),
        (CONTENT_REMOVED.code, str(CONTENT_REMOVED)),
    ],
    "resendNotification": [
        ("not_possible", "The recipient was erased, with the content."),
        (SENSITIVE_DATA_DESTROYED.code, str(SENSITIVE_DATA_DESTROYED)),
        (CONTENT_REMOVED.code, str(CONTENT_REMOVED)),
    ],
    "rescheduleNotification": [("not_possible", "Already sent or attempted.")],
    "pauseBroadcast": [("not_possible", "The broadcast isn't running.")],
    "resumeBroadcast": [("not_possible", "The broadcast isn't paused.")],
    "cancelBroadcast": [("not_possible", "It has ended, and nothing is pending.")],
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


def operation_problems(
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
    query_names = [p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"]
    has_key = any(p["name"] == idempotency.HEADER for p in operation.get("parameters", ()))
    limit = http_body.MAX_BYTES_BULK if name in BULK_OPERATIONS else http_body.MAX_BYTES
    problems: dict[int, list[ApiError]] = {
        400: [
            *_bad_requests(query_names, takes_body="415" in operation["responses"], has_key=has_key)
        ],
        401: [to_api_error(exceptions.NotAuthenticated())],
        403: [to_api_error(PermissionDenied())],
        404: [not_found()],
        409: [ApiError(status=409, code=c, detail=d) for c, d in CONFLICTS.get(name, ())],
        413: [capture_problem(http_body.read_raw, _LARGE_REQUEST, limit=limit)],
        415: [to_api_error(exceptions.UnsupportedMediaType("text/plain"))],
        421: [_misdirected()],
        422: [*_validation_failures(operation, body, example, query_names)],
        429: [to_api_error(exceptions.Throttled(wait=RETRY_AFTER))],
        503: [to_api_error(PyMongoError())],
    }
    if is_live_only:
        problems[403] += [to_api_error(TestKeyError())]
    if name == "createNotification":
        problems[409] = [to_api_error(AlreadyNotifiedError(ObjectId(NOTIFICATION_ID)))]
    if name == "createNotifications":
        problems[503] += [to_api_error(OverloadedError(timedelta(seconds=30)))]
    if has_key:
        problems[422] += [to_api_error(KeyReusedError())]
    return problems


def capture_problem(call: Callable[..., Any], *args: Any, **kwargs: Any) -> ApiError:
    """Return the problem that a call raises; raises AssertionError if it raises none."""
    try:
        call(*args, **kwargs)
    except (ApiError, InvalidRequestError) as error:
        return to_api_error(error)
    raise AssertionError("this is no problem")


_LARGE_REQUEST = SimpleNamespace(META={"CONTENT_LENGTH": "99999999"})
_EMPTY_REQUEST = SimpleNamespace(META={"CONTENT_LENGTH": "0"})


def _bad_requests(
    query_names: Sequence[str], *, takes_body: bool, has_key: bool
) -> Iterator[ApiError]:
    if takes_body:
        yield capture_problem(http_body.decode, b'{"type": ')
        yield capture_problem(http_body.read_body, _EMPTY_REQUEST)
    else:
        yield capture_problem(query.reject_unknown, QueryDict("colour=red"), allowed=())
    if "cursor" in query_names:
        yield capture_problem(
            filters.parse_list_request,
            QueryDict("cursor=nonsense"),
            client_id=ObjectId(NOTIFICATION_ID),
        )
    if has_key:
        yield capture_problem(
            idempotency.optional_key, SimpleNamespace(headers={idempotency.HEADER: "a key"})
        )


def _validation_failures(
    operation: Operation,
    body: type[msgspec.Struct] | None,
    example: Any,
    query_names: Sequence[str],
) -> Iterator[ApiError]:
    if body is not None:
        yield capture_problem(http_body.convert, {**example, "colour": "red"}, body)
    elif "limit" in query_names:
        yield capture_problem(
            filters.parse_list_request, QueryDict("limit=0"), client_id=ObjectId(NOTIFICATION_ID)
        )
    elif query_names:
        yield validation_failed(
            [FieldProblem(f"/{query_names[0]}", "invalid", "Not a value of this parameter.")]
        )
    elif operation["operationId"] == "publishTemplateVersion":
        yield capture_problem(http_body.convert, {"colour": "red"}, EmptyRequest)
    elif operation["operationId"] == "joinTopic":
        expected = "A topic has a-z, 0-9, _ and -, begins with none of the last two, at most 64."
        yield validation_failed([FieldProblem("", "invalid_topic", expected)])


def _misdirected() -> ApiError:
    detail = "Streams have a process of their own: https://stream.example.com/api/v1/inbox/stream"
    return ApiError(status=421, code="not_here", detail=detail)


def problem_view(problem: ApiError, *, path: str) -> dict[str, Any]:
    """Return a problem as it is answered at ``path``."""
    request: Any = SimpleNamespace(path=path, request_id=EXAMPLE_IDS["request_id"])
    view: dict[str, Any] = msgspec.to_builtins(problem.body(request))
    return view
