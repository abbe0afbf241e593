"""The part of Google's token endpoint that service accounts use."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from urllib.parse import parse_qsl

import msgspec

from ...credentials import TOKEN_PATH, ServiceAccount
from ...log import Record
from ...outcomes import Outcome
from ...responses import ProviderResponse
from .. import network_faults
from ..base import Channel, DisplayedMessage, IncomingRequest, Provider, RequestResult
from .assertion import TokenRequestError, decode_unverified, verify
from .outcomes import DENIED, NO_TOKEN, OUTCOMES, SHORT_LIVED
from .tokens import LIFETIME, AccessTokens

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
JSON = {
    "Content-Type": "application/json; charset=UTF-8",
    "Cache-Control": "no-cache, no-store, max-age=0, must-revalidate",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GoogleOAuth(Provider):
    """``POST /token``: returns an access token for an assertion."""

    account: ServiceAccount
    tokens: AccessTokens
    name = "google-oauth"
    title = "Google's token endpoint"
    channel = Channel.NONE
    route = TOKEN_PATH
    max_body = 64 * 1024
    outcomes = OUTCOMES
    addressing = "Scripted for the service account's address; there are no magic ones."

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a token request."""
        parameters = _parameters(request) if request.method == "POST" else None
        if parameters is None:
            plain = {"Content-Type": "text/plain"}
            reply = ProviderResponse(status=404, body=b"Not Found", headers=plain)
            return RequestResult(
                outcome="not-found", response=reply, reason="not found", is_message=False
            )
        reason: str | None
        try:
            outcome, scopes = self._grant(parameters, request, now=now)
        except TokenRequestError as refused:
            name, reason = "not-granted", f"{refused.error}: {refused}"
            reply = _error(refused.status, refused.error, str(refused))
        else:
            name, reason = outcome.name, None if outcome.accepted else outcome.description
            reply = self._respond(outcome, scopes, now=now)
        claims = decode_unverified(parameters.get("assertion", ""))
        issuer = claims.get("iss")
        # The log has only the assertion's claims, because the assertion is a credential.
        logged = {"grant_type": parameters.get("grant_type"), "claims": claims}
        return RequestResult(
            outcome=name,
            response=reply,
            is_message=False,
            reason=reason,
            title="Access token",
            recipients=(issuer,) if isinstance(issuer, str) else (),
            logged_body=msgspec.json.encode(logged),
        )

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a message without content, because the token endpoint gets no messages."""
        return DisplayedMessage(recipients=record.recipients, title=record.title or "")

    def _grant(
        self, parameters: Mapping[str, str], request: IncomingRequest, *, now: datetime
    ) -> tuple[Outcome, list[str]]:
        """Return the outcome of a token request and the scopes. Raises TokenRequestError."""
        grant = parameters.get("grant_type")
        if not grant:
            raise TokenRequestError("invalid_request", "Required parameter is missing: grant_type")
        if grant != GRANT:
            raise TokenRequestError("unsupported_grant_type", f"Invalid grant_type: {grant[:100]}")
        if not parameters.get("assertion"):
            raise TokenRequestError("invalid_request", "Required parameter is missing: assertion")
        endpoint = f"http://{request.headers.get('host', '')}{TOKEN_PATH}"
        scopes = verify(parameters["assertion"], account=self.account, endpoint=endpoint, now=now)
        email = self.account.file.client_email
        outcome = self.choose_outcome(email, magic=lambda _: "", is_message=False)
        if outcome.name in DENIED:
            raise TokenRequestError(*DENIED[outcome.name])
        return outcome, scopes

    def _respond(self, outcome: Outcome, scopes: list[str], *, now: datetime) -> ProviderResponse:
        if reply := network_faults.proxy_response(outcome, TOKEN_PATH):
            return reply
        if outcome.status != HTTPStatus.OK:
            return _error(outcome.status, "internal_failure", "Backend Error")
        is_short_lived = outcome.name == SHORT_LIVED
        lifetime = timedelta(seconds=self.timings.short_lived) if is_short_lived else LIFETIME
        answer = {
            "access_token": self.tokens.issue(scopes, now=now, lifetime=lifetime),
            "expires_in": int(lifetime.total_seconds()),
            "token_type": "Bearer",
        }
        return ProviderResponse(
            status=outcome.status,
            body=msgspec.json.encode({} if outcome.name == NO_TOKEN else answer),
            headers=JSON,
            mode=outcome.mode,
        )


def _parameters(request: IncomingRequest) -> dict[str, str] | None:
    if request.body is None:
        return None
    if request.headers.get("content-type", "").startswith("application/json"):
        try:
            found = request.json()
        except ValueError:
            return {}
        parameters = found.items() if isinstance(found, dict) else ()
        return {name: value for name, value in parameters if isinstance(value, str)}
    return dict(parse_qsl(request.body.decode(errors="replace"), keep_blank_values=True))


def _error(status: int, error: str, description: str) -> ProviderResponse:
    body = msgspec.json.encode({"error": error, "error_description": description})
    return ProviderResponse(status=status, body=body, headers=JSON)
