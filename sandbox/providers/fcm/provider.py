"""FCM, as far as this service talks to it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

import msgspec

from ...behaviours import Behaviours
from ...config import Timings
from ...credentials import ServiceAccount
from ...log import Record
from ...outcomes import Outcome, Outcomes
from ...responses import ProviderResponse
from ..base import Channel, DisplayedMessage, IncomingRequest, RequestResult, WithoutWebhooks
from ..google_oauth.tokens import AccessTokens, TokenStatus
from . import answers, refusals
from .answers import Refusal
from .outcomes import EXPIRED_TOKEN, NO_NAME, NOT_JSON, OUTCOMES, RETRY_AFTER, magic
from .presentation import deliveries, display, recipient, references, title
from .strict_parsing import parse
from .validation import problem

SCOPES = frozenset(
    f"https://www.googleapis.com/auth/{name}" for name in ("firebase.messaging", "cloud-platform")
)
FAKE_ID = "fake_message_id"
"""What FCM calls a message that was only checked."""
_SEND = re.compile(r"/v1/projects/([^/]+)/messages:send")


class RejectedRequestError(Exception):
    """A request is refused for its form, before anybody looks whom it is for."""

    def __init__(self, refusal: Refusal, *, message: Mapping[str, Any] | None = None) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Fcm(WithoutWebhooks):
    """The HTTP v1 API: ``POST /v1/projects/{project}/messages:send``."""

    behaviours: Behaviours
    timings: Timings
    account: ServiceAccount
    tokens: AccessTokens
    name: str = "fcm"
    title: str = "Firebase Cloud Messaging"
    channel: Channel = Channel.PUSH
    route: str = "/v1/{rest:.*}"
    max_body: int = 4 * 1024 * 1024
    outcomes: Outcomes = OUTCOMES
    addressing: str = (
        "The beginning of a registration token, or of a topic, chooses what becomes of the "
        "message: the token is the name itself, or the name, a -, _ or :, and anything more."
    )

    def recipient_patterns(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the beginnings of the tokens that ask for this outcome."""
        return tuple(f"{name}-…" for name in (outcome.name, *outcome.aliases))

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request; FCM reports nothing afterwards."""
        path = _SEND.fullmatch(request.path)
        if path is None or request.method != "POST":
            return RequestResult(
                outcome="not-found",
                response=answers.path_not_found(),
                reason="There is no such path.",
            )
        try:
            token = self._token(request, now=now)
            send_request = self._validated(request, project=path[1])
        except RejectedRequestError as rejected:
            return _refused(rejected.refusal, message=rejected.message)
        return self._decide(send_request, token=token, now=now)

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a push as its recipient sees it."""
        send_request, _ = parse(record.json())
        return display(send_request["message"], project=self.account.project_id)

    def deliveries(self, record: Record) -> Iterator[tuple[str, str]]:
        """Return the token with each reference the message has."""
        send_request, _ = parse(record.json())
        return deliveries(send_request["message"])

    def _token(self, incoming: IncomingRequest, *, now: datetime) -> str:
        """Return the access token, if it is a good one; raises Rejected."""
        scheme, _, token = incoming.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer":
            raise RejectedRequestError(answers.credentials_missing())
        match self.tokens.status(token, scopes=SCOPES, now=now):
            case TokenStatus.UNKNOWN:
                raise RejectedRequestError(answers.unauthenticated("ACCESS_TOKEN_TYPE_UNSUPPORTED"))
            case TokenStatus.EXPIRED:
                raise RejectedRequestError(answers.unauthenticated("ACCESS_TOKEN_EXPIRED"))
            case TokenStatus.OUT_OF_SCOPE:
                raise RejectedRequestError(answers.out_of_scope())
        return token

    def _validated(self, incoming: IncomingRequest, *, project: str) -> dict[str, Any]:
        """Return the request, if there is nothing wrong with it; raises Rejected."""
        if incoming.body is None:
            raise RejectedRequestError(refusals.too_large(self.max_body))
        try:
            body = msgspec.json.decode(incoming.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise RejectedRequestError(refusals.not_json(incoming)) from None
        send_request, violations = parse(body)
        message = send_request.setdefault("message", {})
        if violations:
            raise RejectedRequestError(answers.wrong_shape(violations), message=message)
        if project != self.account.project_id:
            raise RejectedRequestError(
                answers.project_not_found(outcome="wrong-project"), message=message
            )
        if found := problem(message):
            raise RejectedRequestError(answers.invalid(found), message=message)
        return send_request

    def _decide(
        self, send_request: Mapping[str, Any], *, token: str, now: datetime
    ) -> RequestResult:
        """Return what becomes of a good request."""
        message = send_request["message"]
        outcome = self.behaviours.choose_outcome(
            recipient(message), provider=self.name, outcomes=self.outcomes, magic=magic
        )
        if outcome.status >= HTTPStatus.MULTIPLE_CHOICES:
            return self._refuse(outcome, message, token=token, now=now)
        if not send_request.get("validate_only"):
            return self._accept(outcome, message)
        name = f"projects/{self.account.project_id}/messages/{FAKE_ID}"
        return RequestResult(
            outcome="only-checked",
            response=answers.success(name),
            reason="validate_only: the message was checked and not sent.",
            is_json=True,
            **_log_fields(message),
        )

    def _refuse(
        self, outcome: Outcome, message: Mapping[str, Any], *, token: str, now: datetime
    ) -> RequestResult:
        if outcome.name == EXPIRED_TOKEN:
            self.tokens.revoke(token)
        path = f"/v1/projects/{self.account.project_id}/messages:send"
        if reply := answers.network_fault(outcome, path):
            return RequestResult(
                outcome=outcome.name,
                response=reply,
                reason=outcome.description,
                is_json=True,
                **_log_fields(message),
            )
        refused = refusals.for_outcome(
            outcome, project=self.account.project_id, pause=self.timings.rate_limit, now=now
        )
        return _refused(refused, message=message)

    def _accept(self, outcome: Outcome, message: Mapping[str, Any]) -> RequestResult:
        message_id = answers.new_name(self.account.project_id)
        return RequestResult(
            outcome=outcome.name,
            response=_acceptance(outcome, message_id),
            accepted=outcome.accepted,
            reason=None if outcome.accepted else outcome.description,
            message_id=message_id,
            is_json=True,
            **_log_fields(message),
        )


def _acceptance(outcome: Outcome, message_id: str) -> ProviderResponse:
    """Return the 200, or what is there in its place."""
    if outcome.name == NOT_JSON:
        return ProviderResponse(status=200, body=b"<html></html>", headers=answers.HTML)
    if outcome.name == NO_NAME:
        return ProviderResponse(status=200, body=b"{}\n", headers=answers.JSON)
    headers = answers.retry_after(1) if outcome.name == RETRY_AFTER else {}
    return answers.success(message_id, manner=outcome.mode, headers=headers)


def _refused(refusal: Refusal, *, message: Mapping[str, Any] | None = None) -> RequestResult:
    """Return a refusal, with as much of a faulty message as can be made out."""
    return RequestResult(
        outcome=refusal.outcome,
        response=answers.refusal(refusal),
        reason=refusal.reason,
        is_json=message is not None,
        **(_log_fields(message) if message else {}),
    )


def _log_fields(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the log says of a message, which need not be a valid one."""
    to = recipient(message)
    return {
        "title": title(message),
        "recipients": (to,) if to else (),
        "references": references(message),
    }
