"""Access tokens for FCM: one for the whole process, renewed before it ends.

However many threads ask at once, Google is asked once, in a thread of its own: whoever waits does
so no longer than its own send may take. A token that is near its end is renewed while it is still
in use, so that a token endpoint that is away for a few minutes is not noticed.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Self
from urllib.parse import urlencode

import msgspec
import structlog

from notifyproject.outside.deadlines import Deadline

from ..errors import Answer, ChannelUnavailable, ProviderError
from . import http, transfers
from .fcm_account import UnusableAccount, read

log = structlog.get_logger(__name__)

FETCH_TIMEOUT = 5.0
RENEW_EARLY = timedelta(minutes=5)
"""From so long before its end on, a token is renewed while it is used."""
LAST_USE = timedelta(minutes=1)
"""A token that ends sooner than this is not used: it has to outlive the send and clocks differ."""
FAILURE_REMEMBERED = timedelta(seconds=5)
"""A failure is everybody's for so long: a batch behind a dead endpoint asks it once."""
MAX_CODE = 100
OK, FIRST_OWN_PROBLEM = 200, 500
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SLOW = "Google did not give an access token in time."
_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """What Google gave, and until when it serves."""

    value: str = field(repr=False)
    renew_at: datetime
    last_use_at: datetime

    @classmethod
    def lasting(cls, value: str, *, lifetime: timedelta, now: datetime) -> Self:
        """Return a token that ends after ``lifetime``; a short one serves for half of that."""
        half = lifetime / 2
        return cls(
            value=value,
            renew_at=now + max(half, lifetime - RENEW_EARLY),
            last_use_at=now + max(half, lifetime - LAST_USE),
        )


class _Grant(msgspec.Struct):
    """The token endpoint's answer."""

    access_token: Annotated[str, msgspec.Meta(pattern=r"^[\x21-\x7e]+\Z")]
    expires_in: Annotated[int, msgspec.Meta(gt=0, le=24 * 3600)] = 3600


class Tokens:
    """The access tokens of one service account."""

    def __init__(self, source: str, *, clock: Callable[[], datetime]) -> None:
        self._source = source
        self._clock = clock
        self._lock = threading.Lock()
        self._token: AccessToken | None = None
        self._fetch: Future[AccessToken] | None = None
        """The fetch under way, or the last one if it failed."""
        self._failed_at: datetime | None = None

    @property
    def has_one(self) -> bool:
        """Whether nobody would have to wait for a token now."""
        with self._lock:
            return self._token is not None and self._clock() < self._token.last_use_at

    def current(self, *, deadline: Deadline) -> AccessToken:
        """Return a token to send with, waiting until ``deadline`` for one if there is none.

        Raises ChannelUnavailable if Google gives none or not in time.
        """
        with self._lock:
            token, now = self._token, self._clock()
            if token is not None and now < token.renew_at:
                return token
            fetch = self._joined(now)
        if token is not None and now < token.last_use_at:
            return token
        return _result(fetch, deadline)

    def replace(self, rejected: AccessToken, *, deadline: Deadline) -> AccessToken:
        """Return another token than one FCM refused; the many who had it share the new one."""
        with self._lock:
            if self._token is rejected:
                self._token = None
        return self.current(deadline=deadline)

    def _joined(self, now: datetime) -> Future[AccessToken]:
        """Return the fetch under way or one that has just failed, else begin one; locked."""
        if self._fetch is not None and (not self._fetch.done() or self._failed_lately(now)):
            return self._fetch
        fetch: Future[AccessToken] = Future()
        thread = threading.Thread(target=self._run, args=(fetch,), name="fcm-token", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # The machine has no more threads, or the process is about to end.
            fetch.set_exception(ChannelUnavailable(f"No access token was asked for: {error}."))
        else:
            self._fetch = fetch
        return fetch

    def _failed_lately(self, now: datetime) -> bool:
        # A clock that was set back must not let a failure last.
        return self._failed_at is not None and (
            timedelta(0) <= now - self._failed_at < FAILURE_REMEMBERED
        )

    def _run(self, fetch: Future[AccessToken]) -> None:
        try:
            token = _fetch(self._source, clock=self._clock)
        except Exception as error:
            reason = error.reason if isinstance(error, ProviderError) else type(error).__name__
            log.warning("fcm_token_failed", reason=reason)
            with self._lock:
                self._failed_at = self._clock()
                fetch.set_exception(error)
            return
        log.info("fcm_token_fetched", renew_at=token.renew_at.isoformat())
        with self._lock:
            self._token, self._fetch = token, None
        fetch.set_result(token)


_shared: dict[tuple[int, str], Tokens] = {}


def shared(source: str, *, clock: Callable[[], datetime]) -> Tokens:
    """Return this process's tokens of a service account; a forked child gets some of its own."""
    key = (os.getpid(), source)
    return _shared.get(key) or _shared.setdefault(key, Tokens(source, clock=clock))


def _result(fetch: Future[AccessToken], deadline: Deadline) -> AccessToken:
    try:
        return fetch.result(deadline.left())
    except TimeoutError as error:
        raise ChannelUnavailable(SLOW) from error
    except ChannelUnavailable as error:
        # Everybody who waited raises one of their own.
        raise ChannelUnavailable(
            error.reason, answer=error.answer, retry_after=error.retry_after
        ) from error


def _fetch(source: str, *, clock: Callable[[], datetime]) -> AccessToken:
    """Ask Google for a token, once; the account is read anew, for its key may have changed.

    Raises ChannelUnavailable and nothing else, whatever the endpoint does.
    """
    now = clock()
    try:
        account = read(source)
        response = transfers.post(
            account.token_uri,
            body=urlencode({"grant_type": GRANT, "assertion": account.assertion(now=now)}).encode(),
            headers=_HEADERS,
            timeout=FETCH_TIMEOUT,
        )
    except UnusableAccount as error:
        raise ChannelUnavailable(str(error)) from error
    except ProviderError as error:
        raise ChannelUnavailable(f"No access token from Google. {error.reason}") from error
    if response.status != OK:
        raise _refusal(response, now=clock())
    try:
        grant = msgspec.json.decode(response.body, type=_Grant)
    except (ValueError, RecursionError) as error:
        raise ChannelUnavailable(
            "Google's token endpoint gave an answer without an access token.",
            answer=Answer(status=response.status),
        ) from error
    return AccessToken.lasting(
        grant.access_token, lifetime=timedelta(seconds=grant.expires_in), now=now
    )


def _refusal(response: http.Response, *, now: datetime) -> ChannelUnavailable:
    reason = (
        "Google's token endpoint had a problem of its own."
        if response.status >= FIRST_OWN_PROBLEM
        else "Google does not accept the service account."
    )
    return ChannelUnavailable(
        f"{reason} ({response.status})",
        answer=Answer(status=response.status, code=_code(response.body), excerpt=response.excerpt),
        retry_after=http.retry_after(response.headers, now=now),
    )


def _code(body: bytes) -> str | None:
    """Return the error's name: ``invalid_grant`` for an account or a key that is gone."""
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return None
    code = found.get("error") if isinstance(found, dict) else None
    return http.redact(code)[:MAX_CODE] if isinstance(code, str) else None
