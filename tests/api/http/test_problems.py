"""Problem responses of errors, and their list in docs/reference/api.md."""

import json
import re
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import Http404
from django.test import Client, RequestFactory
from pymongo.errors import AutoReconnect
from rest_framework import exceptions
from rest_framework.request import Request

from access.clients import authentication
from api.http import problems
from api.http.problems import (
    MEDIA_TYPE,
    ProblemType,
    exception_handler,
    status_title,
    validation_failed,
)
from notifications.intake.requests import AlreadyNotifiedError, KeyReusedError
from notifications.validation import FieldProblem, InvalidRequestError
from notifyproject.settings.environment import BASE_DIR
from tests.support.tables import each_case


def answered(error: Exception) -> Any:
    request = RequestFactory().get("/api/v1/notifications/x?secret=canary")
    return exception_handler(error, {"request": Request(request)})


@each_case(
    "error, status, code",
    [
        (
            InvalidRequestError([FieldProblem("/type", "unknown_type", "None.")]),
            422,
            "validation_failed",
        ),
        (AlreadyNotifiedError(None), 409, "already_notified"),
        (KeyReusedError(), 422, "idempotency_key_reused"),
        (AutoReconnect("canary"), 503, "store_unavailable"),
        (DatabaseError("canary"), 503, "store_unavailable"),
        (Http404("canary"), 404, "not_found"),
        (PermissionDenied("canary"), 403, "insufficient_scope"),
        (exceptions.NotFound("canary"), 404, "not_found"),
        (exceptions.NotAuthenticated("canary"), 401, "unauthenticated"),
        (exceptions.AuthenticationFailed("canary"), 401, "unauthenticated"),
        (exceptions.PermissionDenied("canary"), 403, "insufficient_scope"),
        (authentication.TestKeyError(), 403, "test_key"),
        (exceptions.MethodNotAllowed("PUT", "canary"), 405, "method_not_allowed"),
        (exceptions.UnsupportedMediaType("canary"), 415, "unsupported_media_type"),
        (exceptions.Throttled(wait=3), 429, "rate_limited"),
        (exceptions.ParseError("canary"), 400, "bad_request"),
        (RuntimeError("canary"), 500, "internal_error"),
    ],
)
def test_every_error_becomes_a_problem_without_values(
    error: Exception, status: int, code: str
) -> None:
    answer = answered(error)
    problem = json.loads(answer.content)
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert answer.headers["Content-Type"] == MEDIA_TYPE
    assert problem["instance"] == "/api/v1/notifications/x"
    assert b"canary" not in answer.content


@each_case("wait, seconds", [(0.2, "1"), (1, "1"), (3.1, "4"), (None, None)])
def test_retry_after_is_rounded_up_to_seconds(wait: float | None, seconds: str | None) -> None:
    assert answered(exceptions.Throttled(wait=wait)).headers.get("Retry-After") == seconds


def test_store_unavailable_has_retry_after() -> None:
    assert answered(AutoReconnect()).headers["Retry-After"] == "5"


def test_field_problems_have_pointers() -> None:
    answer = answered(validation_failed([FieldProblem("/data/a~1b", "nul_character", "A text.")]))
    (error,) = json.loads(answer.content)["errors"]
    assert error == {"pointer": "/data/a~1b", "code": "nul_character", "detail": "A text."}


@each_case(
    "status, title",
    [
        (413, "Request Entity Too Large"),
        (422, "Unprocessable Entity"),
        (404, "Not Found"),
        (503, "Service Unavailable"),
    ],
)
def test_status_titles_do_not_depend_on_the_python_version(status: int, title: str) -> None:
    assert status_title(status) == title


PAGE = (BASE_DIR / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
CATALOGUE = {
    problem.code: problem for problem in vars(problems).values() if isinstance(problem, ProblemType)
}


def test_page_lists_every_problem_type() -> None:
    listed = {
        code: (int(status), title)
        for codes, status, title in re.findall(
            r"^\| (`[a-z0-9_`, ]+`) \| (\d{3}) \| ([^|;]+?)(?:;[^|]*)? \|$", PAGE, re.MULTILINE
        )
        for code in re.findall(r"`(\w+)`", codes)
    }
    assert listed == {code: (problem.status, problem.title) for code, problem in CATALOGUE.items()}


def test_request_for_another_host_is_told_which_setting_admits_it(client: Client) -> None:
    answer = client.get("/api/v1/notifications", headers={"Host": "elsewhere.example.com"})
    assert answer.status_code == 400
    assert answer.json()["code"] == "bad_request"
    assert "ALLOWED_HOSTS" in answer.json()["detail"]
    assert "elsewhere" not in answer.content.decode()
