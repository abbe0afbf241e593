"""Locks out brute-force console sign-ins: by password, as a handler for django-axes, and by OIDC.

MongoDB counts failures per account from one address, per address, and per account, each for 15
minutes from the first failure. Names and addresses are hashed. A refused sign-in by OIDC counts
towards its address. Sign-ins by OIDC that an address begins have a limit of their own.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog
from axes.handlers.base import AxesHandler
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from pymongo import ReturnDocument

from notifyproject.platform.client_ip import client_ip

from ..documents import LOGIN_FAILURES

log = structlog.get_logger(__name__)
WINDOW = timedelta(minutes=15)
LIMITS = {"account_from_address": 5, "address": 30, "account": 50}
"""Failures that lock out. The limit per account stops guesses from many addresses. It is high,
because it also locks out the owner."""
MAX_BEGUN = 300
"""Sign-ins by OpenID Connect that one address may begin: each stores a session for some minutes."""
Credentials = Mapping[str, Any] | None


class LockoutHandler(AxesHandler):
    """Counts failed logins and locks out. Set as ``AXES_HANDLER``."""

    def is_locked(self, request: HttpRequest, credentials: Credentials = None) -> bool:
        """Return whether a limit is reached. Raises PyMongoError."""
        keys = _keys(request, credentials)
        limits = {key: LIMITS[name] for name, key in keys.items()}
        wanted = {"_id": {"$in": list(limits)}, "expires_at": {"$gt": request.axes_attempt_time}}
        found = LOGIN_FAILURES().find(wanted)
        return any(row["count"] >= limits[row["_id"]] for row in found)

    def user_login_failed(
        self, sender: Any, credentials: Credentials, request: HttpRequest | None = None, **_: Any
    ) -> None:
        """Count a failed login. At a limit, this request is already locked out."""
        # A locked-out request is no guess: it doesn't extend the lockout.
        if request is None or request.axes_locked_out:
            return
        for name, key in _keys(request, credentials).items():
            count = _count(key, request.axes_attempt_time)
            if count >= LIMITS[name]:
                request.axes_locked_out = True
                log.warning("login_locked", by=name, failures=count)

    def user_logged_in(self, sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
        """Reset the failures of the account after a successful login."""
        reset(request, user.get_username())


def reset(request: HttpRequest, username: str) -> None:
    """Delete the failures of an account after its right password, but not those of the address."""
    keys = _keys(request, {"username": username})
    del keys["address"]
    LOGIN_FAILURES().delete_many({"_id": {"$in": list(keys.values())}})


def may_begin(request: HttpRequest, *, now: datetime) -> bool:
    """Count a sign-in by OpenID Connect. Return whether its address is within its limits."""
    if is_address_locked(request, now=now):
        return False
    count = _count(_hash("begun", _address(request)), now)
    if count == MAX_BEGUN + 1:
        log.warning("login_locked", by="begun", failures=count)
    return count <= MAX_BEGUN


def is_address_locked(request: HttpRequest, *, now: datetime) -> bool:
    """Return whether too many sign-ins from the request's address failed. Raises PyMongoError."""
    wanted = {"_id": _hash("address", _address(request)), "expires_at": {"$gt": now}}
    found = LOGIN_FAILURES().find_one(wanted)
    return found is not None and found["count"] >= LIMITS["address"]


def count_refusal(request: HttpRequest, *, now: datetime) -> None:
    """Count a sign-in by OpenID Connect that was refused. Raises PyMongoError."""
    count = _count(_hash("address", _address(request)), now)
    if count >= LIMITS["address"]:
        log.warning("login_locked", by="address", failures=count)


def locked_out(
    request: HttpRequest,
    _response: HttpResponse | None = None,
    _credentials: Credentials = None,
) -> HttpResponse:
    """Return the 429 response of a lockout. Set as ``AXES_LOCKOUT_CALLABLE``."""
    minutes = WINDOW // timedelta(minutes=1)
    context = {"title": "Too many tries to sign in", "minutes": minutes}
    response = render(request, "console/sign_in/locked_out.html", context, status=429)
    response["Retry-After"] = str(minutes * 60)
    return response


def _count(key: str, now: datetime) -> int:
    is_expired = {"$lte": [{"$ifNull": ["$expires_at", now]}, now]}
    fields = {
        "count": {"$cond": [is_expired, 1, {"$add": ["$count", 1]}]},
        "expires_at": {"$cond": [is_expired, now + WINDOW, "$expires_at"]},
    }
    changed = LOGIN_FAILURES().find_one_and_update(
        {"_id": key}, [{"$set": fields}], upsert=True, return_document=ReturnDocument.AFTER
    )
    return changed["count"] if changed is not None else 0


def _keys(request: HttpRequest, credentials: Credentials) -> dict[str, str]:
    account = str((credentials or {}).get("username") or "").strip().casefold()
    address = _address(request)
    return {
        "account_from_address": _hash("both", account, address),
        "address": _hash("address", address),
        "account": _hash("account", account),
    }


def _address(request: HttpRequest) -> str:
    return client_ip(request.META, proxies=settings.TRUSTED_PROXIES)


def _hash(*parts: str) -> str:
    key, text = settings.SECRET_KEY.encode(), "\0".join(parts).encode()
    return hmac.new(key, text, hashlib.sha256).hexdigest()
