"""The provider's metadata and signing keys, by discovery. Each process has its own copies."""

import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jwt
import msgspec
from django.conf import settings
from jwt import PyJWK

from notifyproject.platform.server_health import ServerHealth

from . import http
from .errors import Refusal, RefusedError, UnavailableError

HTTP_OK = 200
METADATA_PATH = "/.well-known/openid-configuration"
MAX_AGE = 3600.0
"""Seconds for which metadata and keys are used."""
FRESH = 10.0
"""Maximum age in seconds of the metadata that a sign-in starts with: it shows an outage."""
MIN_KEYS_AGE = 30.0
"""Seconds before an unknown key ID may fetch the keys again, because anyone can send one."""


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the provider's metadata that is used."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _KeySet(msgspec.Struct, frozen=True, kw_only=True):
    keys: tuple[dict[str, Any], ...]


class Provider:
    """The provider with an issuer's URL."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._lock = threading.Lock()
        self._metadata: Metadata | None = None
        self._keys: tuple[dict[str, Any], ...] = ()
        self._metadata_at = self._keys_at = float("-inf")
        self._health = ServerHealth()

    def metadata(self, *, max_age: float = MAX_AGE) -> Metadata:
        """Return the metadata. Raises UnavailableError, and RefusedError for a wrong issuer."""
        with self._lock:
            if self._metadata is None or _age(self._metadata_at) > max_age:
                self._metadata = self._fetch_metadata()
                self._metadata_at = time.monotonic()
            return self._metadata

    def signing_key(self, header: Mapping[str, Any]) -> PyJWK:
        """Return the key for a token's header. Raises RefusedError and UnavailableError."""
        uri = self.metadata().jwks_uri
        with self._lock:
            if _age(self._keys_at) > MAX_AGE:
                self._fetch_keys(uri)
            found = self._find_key(header)
            if found is None and _age(self._keys_at) > MIN_KEYS_AGE:
                self._fetch_keys(uri)
                found = self._find_key(header)
        if found is None:
            raise RefusedError(Refusal.SIGNATURE, "no such key")
        return found

    def _fetch_metadata(self) -> Metadata:
        answer = self._get(self.issuer.rstrip("/") + METADATA_PATH)
        metadata = http.decode(answer.body, Metadata)
        if metadata.issuer != self.issuer:
            raise RefusedError(Refusal.ISSUER, "the metadata is another issuer's")
        urls = (
            metadata.authorization_endpoint,
            metadata.token_endpoint,
            metadata.jwks_uri,
            *([metadata.userinfo_endpoint] if metadata.userinfo_endpoint else []),
        )
        if not all(http.is_allowed(url, issuer=self.issuer) for url in urls):
            raise RefusedError(Refusal.MALFORMED, "an endpoint isn't HTTPS")
        return metadata

    def _fetch_keys(self, uri: str) -> None:
        self._keys = http.decode(self._get(uri).body, _KeySet).keys
        self._keys_at = time.monotonic()

    def _get(self, url: str) -> http.Answer:
        if self._health.is_paused():
            raise UnavailableError("it was unavailable a moment ago")
        try:
            answer = http.get(url)
        except UnavailableError:
            self._health.record_failure()
            raise
        if answer.status != HTTP_OK:
            self._health.record_failure()
            raise UnavailableError(f"HTTP {answer.status}")
        return answer

    def _find_key(self, header: Mapping[str, Any]) -> PyJWK | None:
        wanted, algorithm = header.get("kid"), header["alg"]
        fitting = []
        for stored in self._keys:
            is_named = wanted is None or stored.get("kid") == wanted
            if not is_named or stored.get("use", "sig") != "sig":
                continue
            if stored.get("alg", algorithm) != algorithm:
                continue
            try:
                fitting.append(PyJWK(stored, algorithm=algorithm))
            except jwt.PyJWTError:
                # A key of another type than the algorithm's, or of an unknown one.
                continue
        # Without an ID, a token of several keys is ambiguous.
        return fitting[0] if len(fitting) == 1 else None


def provider() -> Provider:
    """Return the provider of the settings."""
    return _provider(settings.OIDC_ISSUER)


@lru_cache(maxsize=2)
def _provider(issuer: str) -> Provider:
    return Provider(issuer)


def is_enabled() -> bool:
    """Return whether sign-in by a provider is set up."""
    return bool(settings.OIDC_ISSUER)


def _age(at: float) -> float:
    return time.monotonic() - at
