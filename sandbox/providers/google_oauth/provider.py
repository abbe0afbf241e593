"""The token endpoint, as far as a service account needs it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from ...behaviours import Behaviours
from ...config import Timings
from ...google_account import SIGN_IN, ServiceAccount
from ...log import Record
from ...outcomes import Outcome, Outcomes
from ...replies import Reply
from .. import spoiled
from ..base import Channel, Incoming, Mute, Shown, Verdict
from .assertion import NotGranted, peek, verify
from .outcomes import DENIED, EMPTY_HANDED, OUTCOMES, SHORT_LIVED
from .tokens import LIFETIME, AccessTokens

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
JSON = {
    "Content-Type": "application/json; charset=UTF-8",
    "Cache-Control": "no-cache, no-store, max-age=0, must-revalidate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GoogleOAuth(Mute):
    """``POST /token``: an assertion for an access token."""

    behaviours: Behaviours
    timings: Timings
    account: ServiceAccount
    tokens: AccessTokens
    name: str = "google-oauth"
    title: str = "Google's token endpoint"
    channel: Channel = Channel.NONE
    route: str = SIGN_IN
    max_body: int = 64 * 1024
    outcomes: Outcomes = OUTCOMES
    addressing: str = "Scripted for the service account's address; there are no magic ones."

    def spellings(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the names a script may have."""
        return (outcome.name, *outcome.aliases)

    def judge(self, incoming: Incoming, *, now: datetime) -> Verdict:
        """Return the answer to a request for a token."""
        asked = _parameters(incoming) if incoming.method == "POST" else None
        if asked is None:
            reply = Reply(status=404, body=b"Not Found", headers={"Content-Type": "text/plain"})
            return Verdict(outcome="not-found", reply=reply, reason="not found", is_message=False)
        claims = peek(asked.get("assertion", ""))
        try:
            return self._granted(asked, incoming, now=now, claims=claims)
        except NotGranted as refused:
            return _verdict(
                "not-granted",
                _error(refused.status, refused.error, str(refused)),
                asked=asked,
                claims=claims,
                reason=f"{refused.error}: {refused}",
            )

    def show(self, record: Record, *, to: int = 0) -> Shown:
        """Return nothing: no message is ever accepted here."""
        return Shown(sender="", recipients=record.recipients, title=record.title or "", text="")

    def deliveries(self, record: Record) -> Iterator[tuple[str, str]]:
        """Return nothing: no message is ever accepted here."""
        return iter(())

    def _granted(
        self,
        asked: Mapping[str, str],
        incoming: Incoming,
        *,
        now: datetime,
        claims: Mapping[str, Any],
    ) -> Verdict:
        _check_grant(asked)
        endpoint = f"http://{incoming.headers.get('host', '')}{SIGN_IN}"
        found = verify(asked["assertion"], account=self.account, endpoint=endpoint, now=now)
        outcome = self.behaviours.outcome(
            found.email,
            provider=self.name,
            outcomes=self.outcomes,
            magic=lambda _: "",
            is_message=False,
        )
        if outcome.name in DENIED:
            raise NotGranted(*DENIED[outcome.name])
        lifetime = LIFETIME
        if outcome.name == SHORT_LIVED:
            lifetime = timedelta(seconds=self.timings.short_lived)
        return _verdict(
            outcome.name,
            self._reply(outcome, found.scopes, now=now, lifetime=lifetime),
            asked=asked,
            claims=claims,
            reason=None if outcome.accepted else outcome.says,
        )

    def _reply(
        self, outcome: Outcome, scopes: list[str], *, now: datetime, lifetime: timedelta
    ) -> Reply:
        if outcome.name == spoiled.BAD_GATEWAY.name:
            return spoiled.bad_gateway()
        if outcome.status != HTTPStatus.OK:
            return _error(outcome.status, "internal_failure", "Backend Error")
        answer = {
            "access_token": self.tokens.issue(scopes, now=now, lifetime=lifetime),
            "expires_in": int(lifetime.total_seconds()),
            "token_type": "Bearer",
        }
        return Reply(
            status=outcome.status,
            body=msgspec.json.encode({} if outcome.name == EMPTY_HANDED else answer),
            headers=JSON,
            manner=outcome.manner,
        )


def _parameters(incoming: Incoming) -> dict[str, str] | None:
    """Return the parameters of a form, or of JSON; None if the body was too large."""
    if incoming.body is None:
        return None
    if incoming.headers.get("content-type", "").startswith("application/json"):
        try:
            found = msgspec.json.decode(incoming.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {name: value for name, value in found.items() if isinstance(value, str)}
    return dict(parse_qsl(incoming.body.decode(errors="replace"), keep_blank_values=True))


def _check_grant(asked: Mapping[str, str]) -> None:
    grant = asked.get("grant_type")
    if not grant:
        raise NotGranted("invalid_request", "Required parameter is missing: grant_type")
    if grant != GRANT:
        raise NotGranted("unsupported_grant_type", f"Invalid grant_type: {grant[:100]}")
    if not asked.get("assertion"):
        raise NotGranted("invalid_request", "Required parameter is missing: assertion")


def _error(status: int, error: str, description: str) -> Reply:
    body = msgspec.json.encode({"error": error, "error_description": description})
    return Reply(status=status, body=body, headers=JSON)


def _verdict(
    outcome: str,
    reply: Reply,
    *,
    asked: Mapping[str, str],
    claims: Mapping[str, Any],
    reason: str | None,
) -> Verdict:
    """Return a verdict whose log has the claims, and never the assertion: it is a credential."""
    issuer = claims.get("iss")
    logged = {"grant_type": asked.get("grant_type"), "claims": claims}
    return Verdict(
        outcome=outcome,
        reply=reply,
        is_message=False,
        reason=reason,
        title="Access token",
        recipients=(issuer,) if isinstance(issuer, str) else (),
        logged=msgspec.json.encode(logged),
    )
