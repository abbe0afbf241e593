"""The part of FCM that the service uses."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from ...credentials import ServiceAccount
from ...log import Record
from ...outcomes import Outcome
from .. import network_faults
from ..base import Channel, DisplayedMessage, IncomingRequest, Provider, RequestResult
from ..google_oauth.tokens import AccessTokens, TokenStatus
from . import answers
from .answers import Refusal
from .outcomes import EXPIRED_TOKEN, OUTCOMES, magic
from .presentation import display, log_fields, recipient
from .validation import WRONG_SHAPE, problem

SCOPES = frozenset(
    f"https://www.googleapis.com/auth/{name}" for name in ("firebase.messaging", "cloud-platform")
)
_SEND = re.compile(r"/v1/projects/([^/]+)/messages:send")


class RejectedRequestError(Exception):
    """FCM refuses an unauthorized or invalid request."""

    def __init__(self, refusal: Refusal, *, message: Mapping[str, Any] | None = None) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Fcm(Provider):
    """The HTTP v1 API: ``POST /v1/projects/{project}/messages:send``."""

    account: ServiceAccount
    tokens: AccessTokens
    name = "fcm"
    title = "Firebase Cloud Messaging"
    channel = Channel.PUSH
    route = "/v1/{rest:.*}"
    max_body = 4 * 1024 * 1024
    outcomes = OUTCOMES
    recipient_pattern = "{}-…"
    addressing = (
        "The beginning of a registration token, or of a topic, chooses the outcome of the "
        "message: the token is the name itself, or the name, a -, _ or :, and anything more."
    )

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request."""
        path = _SEND.fullmatch(request.path)
        if path is None or request.method != "POST":
            reason = "There is no such path."
            return RequestResult(
                outcome="not-found", response=answers.PATH_NOT_FOUND, reason=reason
            )
        try:
            token = self._token(request, now=now)
            send_request = self._validated(request, project=path[1])
        except RejectedRequestError as rejected:
            return _refused(rejected.refusal, message=rejected.message)
        return self._decide(send_request, token=token, now=now)

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a push as its recipient sees it."""
        return display(record.json()["message"], project=self._project)

    @property
    def _project(self) -> str:
        return self.account.file.project_id

    def _token(self, incoming: IncomingRequest, *, now: datetime) -> str:
        token = incoming.bearer_token()
        if token is None:
            raise RejectedRequestError(answers.CREDENTIALS_MISSING)
        match self.tokens.status(token, scopes=SCOPES, now=now):
            case TokenStatus.UNKNOWN:
                raise RejectedRequestError(answers.unauthenticated("ACCESS_TOKEN_TYPE_UNSUPPORTED"))
            case TokenStatus.EXPIRED:
                raise RejectedRequestError(answers.unauthenticated("ACCESS_TOKEN_EXPIRED"))
            case TokenStatus.OUT_OF_SCOPE:
                raise RejectedRequestError(answers.OUT_OF_SCOPE)
        return token

    def _validated(self, incoming: IncomingRequest, *, project: str) -> dict[str, Any]:
        if incoming.body is None:
            raise RejectedRequestError(answers.too_large(self.max_body))
        try:
            body = incoming.json()
        except ValueError:
            raise RejectedRequestError(answers.not_json(incoming)) from None
        message = body.get("message") if isinstance(body, dict) else None
        if not isinstance(message, dict):
            raise RejectedRequestError(answers.wrong_shape(WRONG_SHAPE))
        if project != self._project:
            raise RejectedRequestError(answers.PROJECT_NOT_FOUND, message=message)
        if found := problem(message):
            refusal = answers.wrong_shape if found is WRONG_SHAPE else answers.invalid
            raise RejectedRequestError(refusal(found), message=message)
        return body

    def _decide(
        self, send_request: Mapping[str, Any], *, token: str, now: datetime
    ) -> RequestResult:
        message = send_request["message"]
        outcome = self.choose_outcome(recipient(message), magic=magic)
        if outcome.status >= HTTPStatus.MULTIPLE_CHOICES:
            return self._refuse(outcome, message, token=token, now=now)
        if not send_request.get("validate_only"):
            number = f"{secrets.randbelow(10**16):016d}"
            name = f"projects/{self._project}/messages/0:{number}%{secrets.token_hex(8)}"
            return RequestResult(
                response=answers.success(outcome, name),
                message_id=name,
                **outcome.result_fields(),
                **log_fields(message),
            )
        name = f"projects/{self._project}/messages/fake_message_id"
        return RequestResult(
            outcome="only-checked",
            response=answers.success(OUTCOMES.default, name),
            reason="validate_only: the message was checked and not sent.",
            is_json=True,
            **log_fields(message),
        )

    def _refuse(
        self, outcome: Outcome, message: Mapping[str, Any], *, token: str, now: datetime
    ) -> RequestResult:
        if outcome.name == EXPIRED_TOKEN:
            self.tokens.revoke(token)
        path = f"/v1/projects/{self._project}/messages:send"
        if reply := network_faults.proxy_response(outcome, path):
            return RequestResult(response=reply, **outcome.result_fields(), **log_fields(message))
        refused = answers.for_outcome(
            outcome, project=self._project, pause=self.timings.rate_limit, now=now
        )
        return _refused(refused, message=message)


def _refused(refusal: Refusal, *, message: Mapping[str, Any] | None = None) -> RequestResult:
    return RequestResult(
        outcome=refusal.outcome,
        response=answers.refusal(refusal),
        reason=refusal.reason,
        is_json=message is not None,
        **(log_fields(message) if message else {}),
    )
