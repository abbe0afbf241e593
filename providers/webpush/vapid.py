"""The tokens with which the service signs pushes: VAPID, RFC 8292."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from devices.push_keys import InvalidKeysError, VapidKey
from domain.web_push import SUBJECT_PATTERN, Fingerprint

LIFETIME = timedelta(hours=12)
"""Push services accept a day at most, by their own clocks."""
MAX_TOKENS = 1_000
"""Tokens that are kept. Whoever registers a browser may name any host below a push service's."""
_SUBJECT = re.compile(SUBJECT_PATTERN)
SUBJECT_FORM = "mailto: and an address, or an https URL, of a public host and without spaces"


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    signed_at: datetime


class Signer:
    """The keys with their tokens, one for each key and origin; for one event loop."""

    def __init__(self, keys: Sequence[VapidKey], *, subject: str) -> None:
        if not keys:
            raise InvalidKeysError("WEBPUSH_KEYS has no key.")
        if not _SUBJECT.fullmatch(subject):
            raise InvalidKeysError(f"WEBPUSH_SUBJECT: expected {SUBJECT_FORM}.")
        self.newest = keys[0]
        self._by_fingerprint = {key.fingerprint: key for key in keys}
        self._subject = subject
        self._tokens: dict[tuple[Fingerprint, str], _Token] = {}

    def key_for(self, wanted: Fingerprint) -> VapidKey:
        """Return the key with which a browser subscribed, or the newest if it isn't configured."""
        return self._by_fingerprint.get(wanted, self.newest)

    def authorization(self, key: VapidKey, *, origin: str, now: datetime) -> str:
        """Return the Authorization header for an origin. A token is used for half of its life."""
        token = self._tokens.get((key.fingerprint, origin))
        if token is None or not timedelta(0) <= now - token.signed_at < LIFETIME / 2:
            claims = {
                "aud": origin,
                "exp": int((now + LIFETIME).timestamp()),
                "sub": self._subject,
            }
            token = _Token(key.sign(claims), now)
            if len(self._tokens) >= MAX_TOKENS:
                del self._tokens[next(iter(self._tokens))]
            self._tokens[key.fingerprint, origin] = token
        return f"vapid t={token.text}, k={key.public_text}"
