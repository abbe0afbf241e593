"""Who guesses passwords of the console is locked out for a while: what django-axes asks to be kept.

Failures are counted in MongoDB, each with one atomic update, so that guesses at the same moment in
several processes are all counted. Three counts are kept, each for a quarter of an hour from its
first failure: of an account from one address, of an address, and of an account from anywhere. Names
and addresses are in none of them, only their hashes.
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

from notifyproject.db.collections import collection

from ..clients.rate_limits import client_ip

log = structlog.get_logger(__name__)
WINDOW = timedelta(minutes=15)
LIMITS = {"account_from_address": 5, "address": 30, "account": 50}
"""Failures after which nobody is let in. The last one is high: it locks the account's owner out,
too, and stops those who guess from many addresses."""
Credentials = Mapping[str, Any] | None


class LockoutHandler(AxesHandler):
    """What becomes of a try to sign in; set as ``AXES_HANDLER``."""

    def is_locked(self, request: HttpRequest, credentials: Credentials = None) -> bool:
        """Return whether too many tries have failed; raises PyMongoError."""
        keys = _keys(request, credentials)
        limits = dict(zip(keys.values(), (LIMITS[name] for name in keys), strict=True))
        now = request.axes_attempt_time
        found = collection("login_failures").find(
            {"_id": {"$in": list(limits)}, "expires_at": {"$gt": now}}
        )
        return any(row["count"] >= limits[row["_id"]] for row in found)

    def user_login_failed(
        self,
        sender: Any,
        credentials: Credentials,
        request: HttpRequest | None = None,
        **kwargs: Any,
    ) -> None:
        """Count a failure; the one that reaches a limit is answered as those after it are."""
        # What is refused for being locked out is no guess: it does not make the wait longer.
        if request is None or request.axes_locked_out:
            return
        now = request.axes_attempt_time
        for name, key in _keys(request, credentials).items():
            count = _count(key, now)
            if count >= LIMITS[name]:
                request.axes_locked_out = True
                log.warning("login_locked", by=name, failures=count)

    def user_logged_in(self, sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
        """Forget what failed of the account: its owner is here."""
        keys = _keys(request, {"username": user.get_username()})
        del keys["address"]
        collection("login_failures").delete_many({"_id": {"$in": list(keys.values())}})


def locked_out(
    request: HttpRequest, _response: HttpResponse | None, _credentials: Credentials
) -> HttpResponse:
    """Return the answer to who is locked out; set as ``AXES_LOCKOUT_CALLABLE``."""
    minutes = WINDOW // timedelta(minutes=1)
    context = {"title": "Too many tries to sign in", "minutes": minutes}
    response = render(request, "console/sign_in/locked_out.html", context, status=429)
    response["Retry-After"] = str(minutes * 60)
    return response


def _count(key: str, now: datetime) -> int:
    """Count a failure and return how many there are; a window that is over begins anew."""
    is_expired = {"$lte": [{"$ifNull": ["$expires_at", now]}, now]}
    changed = collection("login_failures").find_one_and_update(
        {"_id": key},
        [
            {
                "$set": {
                    "count": {"$cond": [is_expired, 1, {"$add": ["$count", 1]}]},
                    "expires_at": {"$cond": [is_expired, now + WINDOW, "$expires_at"]},
                }
            }
        ],
        upsert=True,
        return_document=ReturnDocument.AFTER,
    )
    return changed["count"] if changed is not None else 0


def _keys(request: HttpRequest, credentials: Credentials) -> dict[str, str]:
    """Return what a try is counted under, by the names of the limits."""
    account = str((credentials or {}).get("username") or "").strip().casefold()
    address = client_ip(request.META, proxies=settings.TRUSTED_PROXIES)
    return {
        "account_from_address": _hash("both", account, address),
        "address": _hash("address", address),
        "account": _hash("account", account),
    }


def _hash(*parts: str) -> str:
    """Return a text that says nothing of its parts to who has not our secret key."""
    key, text = settings.SECRET_KEY.encode(), "\0".join(parts).encode()
    return hmac.new(key, text, hashlib.sha256).hexdigest()
