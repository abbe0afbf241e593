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
from ...google_account import ServiceAccount
from ...log import Record
from ...outcomes import Outcome, Outcomes
from ...replies import Reply
from ..base import Channel, Incoming, Mute, Shown, Verdict
from ..google_oauth.tokens import AccessTokens, Standing
from . import answers, refusals
from .answers import Refusal
from .outcomes import ENDS_SESSION, NO_NAME, NOT_JSON, OUTCOMES, WAIT_ANYWAY, magic
from .reading import read
from .showing import deliveries, recipient, references, shown, title
from .validation import problem

SCOPES = frozenset(
    f"https://www.googleapis.com/auth/{name}" for name in ("firebase.messaging", "cloud-platform")
)
FAKE_ID = "fake_message_id"
"""What FCM calls a message that was only checked."""
_SEND = re.compile(r"/v1/projects/([^/]+)/messages:send")


class Rejected(Exception):
    """A request is refused for its form, before anybody looks whom it is for."""

    def __init__(self, refusal: Refusal, *, message: Mapping[str, Any] | None = None) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Fcm(Mute):
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

    def spellings(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the beginnings of the tokens that ask for this outcome."""
        return tuple(f"{name}-…" for name in (outcome.name, *outcome.aliases))

    def judge(self, incoming: Incoming, *, now: datetime) -> Verdict:
        """Return the answer to a request; FCM reports nothing afterwards."""
        path = _SEND.fullmatch(incoming.path)
        if path is None or incoming.method != "POST":
            return Verdict(
                outcome="not-found", reply=answers.no_such_path(), reason="There is no such path."
            )
        try:
            token = self._token(incoming, now=now)
            asked = self._checked(incoming, project=path[1])
        except Rejected as rejected:
            return _refused(rejected.refusal, message=rejected.message)
        return self._decide(asked, token=token, now=now)

    def show(self, record: Record, *, to: int = 0) -> Shown:
        """Return a push as its recipient sees it."""
        asked, _ = read(record.json())
        return shown(asked["message"], project=self.account.project_id)

    def deliveries(self, record: Record) -> Iterator[tuple[str, str]]:
        """Return the token with each reference the message has."""
        asked, _ = read(record.json())
        return deliveries(asked["message"])

    def _token(self, incoming: Incoming, *, now: datetime) -> str:
        """Return the access token, if it is a good one; raises Rejected."""
        scheme, _, token = incoming.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer":
            raise Rejected(answers.credentials_missing())
        match self.tokens.standing(token, scopes=SCOPES, now=now):
            case Standing.UNKNOWN:
                raise Rejected(answers.unauthenticated("ACCESS_TOKEN_TYPE_UNSUPPORTED"))
            case Standing.EXPIRED:
                raise Rejected(answers.unauthenticated("ACCESS_TOKEN_EXPIRED"))
            case Standing.OUT_OF_SCOPE:
                raise Rejected(answers.out_of_scope())
        return token

    def _checked(self, incoming: Incoming, *, project: str) -> dict[str, Any]:
        """Return the request, if there is nothing wrong with it; raises Rejected."""
        if incoming.body is None:
            raise Rejected(refusals.too_large(self.max_body))
        try:
            body = msgspec.json.decode(incoming.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Rejected(refusals.not_json(incoming)) from None
        asked, violations = read(body)
        message = asked.setdefault("message", {})
        if violations:
            raise Rejected(answers.wrong_shape(violations), message=message)
        if project != self.account.project_id:
            raise Rejected(answers.project_not_found(outcome="wrong-project"), message=message)
        if found := problem(message):
            raise Rejected(answers.invalid(found), message=message)
        return asked

    def _decide(self, asked: Mapping[str, Any], *, token: str, now: datetime) -> Verdict:
        """Return what becomes of a good request."""
        message = asked["message"]
        outcome = self.behaviours.outcome(
            recipient(message), provider=self.name, outcomes=self.outcomes, magic=magic
        )
        if outcome.status >= HTTPStatus.MULTIPLE_CHOICES:
            return self._refuse(outcome, message, token=token, now=now)
        if not asked.get("validate_only"):
            return self._accept(outcome, message)
        name = f"projects/{self.account.project_id}/messages/{FAKE_ID}"
        return Verdict(
            outcome="only-checked",
            reply=answers.named(name),
            reason="validate_only: the message was checked and not sent.",
            is_json=True,
            **_facts(message),
        )

    def _refuse(
        self, outcome: Outcome, message: Mapping[str, Any], *, token: str, now: datetime
    ) -> Verdict:
        if outcome.name == ENDS_SESSION:
            self.tokens.revoke(token)
        path = f"/v1/projects/{self.account.project_id}/messages:send"
        if reply := answers.network(outcome, path):
            return Verdict(
                outcome=outcome.name,
                reply=reply,
                reason=outcome.says,
                is_json=True,
                **_facts(message),
            )
        refused = refusals.of(
            outcome, project=self.account.project_id, pause=self.timings.rate_limit, now=now
        )
        return _refused(refused, message=message)

    def _accept(self, outcome: Outcome, message: Mapping[str, Any]) -> Verdict:
        message_id = answers.new_name(self.account.project_id)
        return Verdict(
            outcome=outcome.name,
            reply=_acceptance(outcome, message_id),
            accepted=outcome.accepted,
            reason=None if outcome.accepted else outcome.says,
            message_id=message_id,
            is_json=True,
            **_facts(message),
        )


def _acceptance(outcome: Outcome, message_id: str) -> Reply:
    """Return the 200, or what is there in its place."""
    if outcome.name == NOT_JSON:
        return Reply(status=200, body=b"<html></html>", headers=answers.HTML)
    if outcome.name == NO_NAME:
        return Reply(status=200, body=b"{}\n", headers=answers.JSON)
    headers = answers.retry_after(1) if outcome.name == WAIT_ANYWAY else {}
    return answers.named(message_id, manner=outcome.manner, headers=headers)


def _refused(refused: Refusal, *, message: Mapping[str, Any] | None = None) -> Verdict:
    """Return a refusal, with as much of a faulty message as can be made out."""
    return Verdict(
        outcome=refused.outcome,
        reply=answers.refusal(refused),
        reason=refused.reason,
        is_json=message is not None,
        **(_facts(message) if message else {}),
    )


def _facts(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the log says of a message, which need not be a valid one."""
    to = recipient(message)
    return {
        "title": title(message),
        "recipients": (to,) if to else (),
        "references": references(message),
    }
