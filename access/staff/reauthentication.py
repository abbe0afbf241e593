"""Re-authentication: a sensitive action needs a password or code of the last 10 minutes."""

import re
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.contrib.auth import authenticate
from django.http import HttpRequest

from domain.time import utc_now

from . import lockout, second_factor
from .second_factor import CodeResult

log = structlog.get_logger(__name__)
WINDOW = timedelta(minutes=10)
SESSION_KEY = "authenticated_at"
_CODE = re.compile(r"\d{6}", re.ASCII)


def mark_authenticated(request: HttpRequest, *, now: datetime) -> None:
    """Store in the session that the user has just entered a password or code."""
    request.session[SESSION_KEY] = now.timestamp()


def mark_signed_in(request: HttpRequest, **_: Any) -> None:
    """Store the time of a sign-in. A receiver of ``user_logged_in``."""
    mark_authenticated(request, now=utc_now())


def is_recent(request: HttpRequest, *, now: datetime) -> bool:
    """Return whether the user entered a password or code within ``WINDOW``."""
    at = request.session.get(SESSION_KEY)
    return at is not None and now.timestamp() - at < WINDOW.total_seconds()


def mark_authenticated_at(request: HttpRequest, at: datetime | None, *, now: datetime) -> None:
    """Store when the OpenID provider authenticated the user. None: it didn't say."""
    if at is None:
        request.session.pop(SESSION_KEY, None)
    else:
        mark_authenticated(request, now=min(at, now))


def reauthenticate(
    request: HttpRequest, text: str, *, has_password: bool, now: datetime
) -> CodeResult:
    """Check the user's password, if they have one, or a code of the enrolled authenticator app."""
    code = "".join(text.split())
    if _CODE.fullmatch(code) and second_factor.enrollment_of(request.user.pk) is not None:
        result = second_factor.check(request.user.pk, code, now=now)
    elif not has_password:
        result = CodeResult.WRONG
    else:
        result = CodeResult.RIGHT if is_password(request, text) else CodeResult.WRONG
    if result is CodeResult.RIGHT:
        mark_authenticated(request, now=now)
    else:
        log.warning("reauthentication_failed", user_id=str(request.user.pk), reason=result.value)
    return result


def is_password(request: HttpRequest, text: str) -> bool:
    """Return whether a text is the password of the signed-in user.

    A wrong password counts as a failed sign-in, and the lockout's response replaces the view's.
    """
    name = request.user.get_username()
    if authenticate(request, username=name, password=text) is None:
        return False
    lockout.reset(request, name)
    return True
