"""The Google service account, and its access tokens for FCM.

A process has one token and renews it early, so that a short outage has no effect.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated
from urllib.parse import urlencode

import msgspec
import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from google.auth import crypt, jwt

from domain.errors import ProviderError, ProviderResponse, ProviderUnavailableError
from notifyproject.platform import service_account
from notifyproject.platform.egress import Deadline

from .. import http, http_client
from ..http import Request

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
AUDIENCE = "https://oauth2.googleapis.com/token"
"""The audience of an assertion, independent of the account's ``token_uri``."""
ASSERTION_LIFETIME = timedelta(hours=1)
"""The maximum that Google allows."""
_NonEmptyText = Annotated[str, msgspec.Meta(min_length=1)]
_INVALID_ACCOUNT = "The configured Firebase service account is invalid."


class InvalidCredentialsError(ValueError):
    """The configured service account is invalid. The message contains no secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """The fields of Google's service account file that this service needs."""

    client_email: _NonEmptyText
    project_id: str = ""
    token_uri: _NonEmptyText = AUDIENCE
    private_key: _NonEmptyText = field(repr=False)
    private_key_id: str | None = None

    def assertion(self, *, now: datetime) -> str:
        """Return a signed JWT to exchange for a token, in 0.1 s. Raises InvalidCredentialsError."""
        claims = {
            "iss": self.client_email,
            "aud": AUDIENCE,
            "scope": SCOPE,
            "iat": int(now.timestamp()),
            "exp": int((now + ASSERTION_LIFETIME).timestamp()),
        }
        try:
            signer = crypt.RSASigner.from_string(self.private_key, self.private_key_id)
            return jwt.encode(signer, claims).decode("ascii")
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise InvalidCredentialsError(_INVALID_ACCOUNT) from error


def read_service_account(source: str) -> ServiceAccount:
    """Read a service account from a path or from JSON text. Raises InvalidCredentialsError."""
    if not source.strip():
        raise InvalidCredentialsError("No Firebase service account is configured.")
    try:
        return msgspec.convert(service_account.read(source), ServiceAccount)
    except service_account.OtherFileError as error:
        raise InvalidCredentialsError(f"{_INVALID_ACCOUNT} {error}") from error
    except OSError as error:
        raise InvalidCredentialsError(
            "The Firebase service account's file can't be read."
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidCredentialsError(_INVALID_ACCOUNT) from error


log = structlog.get_logger(__name__)
FETCH_TIMEOUT = 5.0
RENEW_BEFORE_EXPIRY = timedelta(minutes=5)
"""A token is renewed this long before its expiry, and remains in use meanwhile."""
MIN_LIFETIME_LEFT = timedelta(minutes=1)
"""A token that expires sooner isn't used, since it must outlive the send despite clock skew."""
FAILURE_TTL = timedelta(seconds=5)
"""For this long, all callers get a fetch's failure, so that a batch makes one futile request."""
MAX_CODE = 100
OK, MIN_SERVER_ERROR = 200, 500
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
GOOGLE_TIMEOUT_REASON = "Google did not issue an access token in time."
_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """An access token, and when to renew it and to stop using it."""

    value: str = field(repr=False)
    renew_at: datetime
    usable_until: datetime


class _Grant(msgspec.Struct):
    access_token: Annotated[str, msgspec.Meta(pattern=r"^[\x21-\x7e]+\Z")]
    expires_in: Annotated[int, msgspec.Meta(gt=0, le=24 * 3600)] = 3600


class TokenCache:
    """The access tokens of one service account; for one event loop."""

    def __init__(self, source: str, *, clock: Callable[[], datetime]) -> None:
        self._source = source
        self._clock = clock
        self._token: AccessToken | None = None
        self._fetch: asyncio.Task[AccessToken | ProviderUnavailableError] | None = None
        """The active fetch, or the last one if it failed."""
        self._failed_at: datetime | None = None

    async def current(self, *, deadline: Deadline) -> AccessToken:
        """Return a usable token by ``deadline``. Raises ProviderUnavailableError."""
        token, now = self._token, self._clock()
        if token is not None and now < token.renew_at:
            return token
        fetch = self._join_fetch(now)
        if token is not None and now < token.usable_until:
            return token
        try:
            async with asyncio.timeout(deadline.remaining()):
                outcome = await asyncio.shield(fetch)
        except TimeoutError as error:
            raise ProviderUnavailableError(GOOGLE_TIMEOUT_REASON) from error
        if isinstance(outcome, ProviderUnavailableError):
            # A new exception for each waiting send.
            raise ProviderUnavailableError(
                outcome.reason, response=outcome.response, retry_after=outcome.retry_after
            ) from outcome
        return outcome

    async def replace(self, rejected: AccessToken, *, deadline: Deadline) -> AccessToken:
        """Return another token than a rejected one; concurrent callers share the new one."""
        if self._token is rejected:
            self._token = None
        return await self.current(deadline=deadline)

    def _join_fetch(self, now: datetime) -> "asyncio.Task[AccessToken | ProviderUnavailableError]":
        """Return the active or recently failed fetch, else start one."""
        # A clock that was set back must not prolong a failure.
        has_failed_recently = (
            self._failed_at is not None and timedelta(0) <= now - self._failed_at < FAILURE_TTL
        )
        if self._fetch is None or (self._fetch.done() and not has_failed_recently):
            self._fetch = asyncio.create_task(self._run_fetch(), name="fcm-token")
        return self._fetch

    async def _run_fetch(self) -> AccessToken | ProviderUnavailableError:
        try:
            token = await fetch_token(self._source, clock=self._clock)
        except Exception as error:
            if isinstance(error, ProviderUnavailableError):
                failure = error
            else:
                failure = ProviderUnavailableError(f"No access token: {type(error).__name__}.")
            log.warning("fcm_token_failed", reason=failure.reason)
            self._failed_at = self._clock()
            return failure
        log.info("fcm_token_fetched", renew_at=token.renew_at.isoformat())
        self._token, self._fetch = token, None
        return token


_shared: dict[tuple[int, str], TokenCache] = {}


def shared_token_cache(source: str, *, clock: Callable[[], datetime]) -> TokenCache:
    """Return the token cache of a service account in this process. Forks don't share it."""
    key = (os.getpid(), source)
    return _shared.get(key) or _shared.setdefault(key, TokenCache(source, clock=clock))


async def fetch_token(
    source: str, *, clock: Callable[[], datetime], timeout: float | None = None
) -> AccessToken:
    """Fetch a token, with a fresh read of the account: its key may have changed.

    ``timeout`` is in seconds, by default FETCH_TIMEOUT. Raises ProviderUnavailableError.
    """
    now = clock()
    try:
        account = read_service_account(source)
        assertion = await asyncio.to_thread(account.assertion, now=now)
        form = {"grant_type": GRANT, "assertion": assertion}
        response = await http_client.send(
            Request(
                url=account.token_uri,
                body=urlencode(form).encode(),
                headers=_HEADERS,
                timeout=timeout or FETCH_TIMEOUT,
            )
        )
    except InvalidCredentialsError as error:
        raise ProviderUnavailableError(str(error)) from error
    except ProviderError as error:
        raise ProviderUnavailableError(f"No access token from Google. {error.reason}") from error
    if response.status != OK:
        raise refusal_error(response, now=clock())
    try:
        grant = msgspec.json.decode(response.body, type=_Grant)
    except (ValueError, RecursionError) as error:
        raise ProviderUnavailableError(
            "Google's response has no access token.",
            response=ProviderResponse(status=response.status),
        ) from error
    lifetime = timedelta(seconds=grant.expires_in)
    # A short-lived token is used for half of its life.
    return AccessToken(
        value=grant.access_token,
        renew_at=now + max(lifetime / 2, lifetime - RENEW_BEFORE_EXPIRY),
        usable_until=now + max(lifetime / 2, lifetime - MIN_LIFETIME_LEFT),
    )


def refusal_error(response: http.Response, *, now: datetime) -> ProviderUnavailableError:
    """Return the error for a response of the token endpoint other than a grant."""
    answer = http.decode_object(response.body)
    if response.status >= MIN_SERVER_ERROR:
        reason = "Error of Google's token endpoint."
    elif "timeframe" in str(answer.get("error_description")):
        # Google says the same of the times iat and exp for any wrong clock.
        reason = "Google rejected the times of the request for a token. Check this machine's clock."
    else:
        reason = "Google rejected the service account."
    # Such as invalid_grant for a deleted account or key.
    name = answer.get("error")
    code = http.redact(name)[:MAX_CODE] if isinstance(name, str) else None
    return ProviderUnavailableError(
        f"{reason} ({response.status})",
        response=ProviderResponse(status=response.status, code=code, excerpt=response.excerpt),
        retry_after=http.retry_after_seconds(response.headers, now=now),
    )
