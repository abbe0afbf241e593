"""The authorization code flow with PKCE: requests to the provider's endpoints."""

import base64
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from django.conf import settings

from . import http
from .discovery import FRESH, HTTP_OK, Provider
from .errors import Refusal, RefusedError, UnavailableError
from .tokens import Identity, verify_id_token

INVALID_GRANT = "invalid_grant"
UNAUTHORIZED = (401, 403)
_SECRET_BYTES = 32
_BASIC, _POST = "client_secret_basic", "client_secret_post"


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """The response of the token endpoint."""

    access_token: str
    id_token: str | None = None
    refresh_token: str | None = None


class _TokenError(msgspec.Struct, frozen=True, kw_only=True):
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInAttempt:
    """A sign-in in progress, kept in the session until the browser returns from the provider."""

    state: str
    nonce: str
    verifier: str


def new_attempt() -> SignInAttempt:
    """Return an attempt with new secrets."""
    return SignInAttempt(
        state=secrets.token_urlsafe(_SECRET_BYTES),
        nonce=secrets.token_urlsafe(_SECRET_BYTES),
        verifier=secrets.token_urlsafe(_SECRET_BYTES),
    )


def authorization_url(
    attempt: SignInAttempt, *, provider: Provider, redirect_uri: str, is_renewed: bool
) -> str:
    """Return the URL at which the person signs in; ``is_renewed`` asks for credentials again.

    Raises UnavailableError and RefusedError, because it requests the metadata.
    """
    challenge = hashlib.sha256(attempt.verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": settings.OIDC_CLIENT_ID,
        "redirect_uri": redirect_uri,
        "scope": " ".join(settings.OIDC_SCOPES),
        "state": attempt.state,
        "nonce": attempt.nonce,
        "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    if settings.OIDC_ACR_VALUES:
        query["acr_values"] = " ".join(settings.OIDC_ACR_VALUES)
    if is_renewed:
        query |= {"prompt": "login", "max_age": "0"}
    endpoint = provider.metadata(max_age=FRESH).authorization_endpoint
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"


def redeem_code(
    code: str, attempt: SignInAttempt, *, provider: Provider, redirect_uri: str
) -> Tokens:
    """Exchange a code for tokens. Raises RefusedError and UnavailableError."""
    fields = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": attempt.verifier,
    }
    return _request_tokens(fields, provider=provider)


def refresh(refresh_token: str, *, provider: Provider) -> Tokens:
    """Get new tokens. Raises RefusedError if the provider ended the grant, UnavailableError."""
    fields = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    return _request_tokens(fields, provider=provider)


def find_groups(
    tokens: Tokens, identity: Identity | None, *, subject: str, provider: Provider
) -> tuple[str, ...] | None:
    """Return the person's groups from the ID token, or else from userinfo; None without a claim.

    Raises RefusedError if the provider rejects the access token, UnavailableError.
    """
    if identity is None and tokens.id_token is not None:
        identity = verify_id_token(tokens.id_token, provider=provider, nonce=None)
        if identity.subject != subject:
            raise RefusedError(Refusal.SUBJECT)
    found = None if identity is None else _groups(identity.claims)
    if found is not None:
        return found
    claims = userinfo(tokens.access_token, subject=subject, provider=provider)
    return None if claims is None else _groups(claims)


def userinfo(access_token: str, *, subject: str, provider: Provider) -> Mapping[str, Any] | None:
    """Return the claims of userinfo; None if the provider has no such endpoint.

    Raises RefusedError and UnavailableError.
    """
    endpoint = provider.metadata().userinfo_endpoint
    if endpoint is None:
        return None
    answer = http.get(endpoint, headers={"Authorization": f"Bearer {access_token}"})
    if answer.status in UNAUTHORIZED:
        raise RefusedError(Refusal.CODE, "access token")
    if answer.status != HTTP_OK:
        raise UnavailableError(f"HTTP {answer.status} from userinfo")
    claims = http.decode(answer.body, dict[str, Any])
    if claims.get("sub") != subject:
        raise RefusedError(Refusal.SUBJECT, "userinfo")
    return claims


def _groups(claims: Mapping[str, Any]) -> tuple[str, ...] | None:
    value = claims.get(settings.OIDC_GROUPS_CLAIM)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        return tuple(group for group in value if isinstance(group, str))
    return None


def _request_tokens(fields: Mapping[str, str], *, provider: Provider) -> Tokens:
    metadata = provider.metadata()
    name, secret = settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET
    headers: dict[str, str] = {}
    methods = metadata.token_endpoint_auth_methods_supported
    if _BASIC in methods or _POST not in methods:
        # RFC 6749, section 2.3.1: both are form-encoded first.
        pair = f"{quote(name, safe='')}:{quote(secret, safe='')}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    else:
        fields = {**fields, "client_id": name, "client_secret": secret}
    answer = http.post_form(metadata.token_endpoint, fields, headers=headers)
    if answer.status == HTTP_OK:
        return http.decode(answer.body, Tokens)
    error = http.decode(answer.body, _TokenError).error
    if error == INVALID_GRANT:
        raise RefusedError(Refusal.CODE)
    # The settings don't fit the provider, such as invalid_client.
    raise UnavailableError(f"HTTP {answer.status} from the token endpoint: {error[:40]}")
