"""Signs requests to AWS with Signature Version 4, for our own HTTP client. Pure."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import quote, urlsplit

from .http import Request

ALGORITHM = "AWS4-HMAC-SHA256"
_PORTS: Mapping[str, int] = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Keys of AWS. Those of a role have a session token, and expire."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)

    @classmethod
    def of(cls, values: Any, *, prefix: str) -> Self:
        """Return the keys in an account's values, whose names begin with ``prefix``."""
        return cls(
            access_key_id=getattr(values, f"{prefix}_ACCESS_KEY_ID"),
            secret_access_key=getattr(values, f"{prefix}_SECRET_ACCESS_KEY"),
            session_token=getattr(values, f"{prefix}_SESSION_TOKEN"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Signs requests to one service in one region."""

    credentials: Credentials
    region: str
    service: str
    """As in the scope of a signature: ``ses`` or ``sns``."""

    def sign(self, request: Request, *, now: datetime) -> Request:
        """Return a request with its signature, which covers all headers and the body.

        The URL must have no query.
        """
        time = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        headers = {**request.headers, "X-Amz-Date": time}
        if self.credentials.session_token:
            headers["X-Amz-Security-Token"] = self.credentials.session_token
        scope = f"{time[:8]}/{self.region}/{self.service}/aws4_request"
        names, canonical = _canonical_request(request, headers)
        text = "\n".join((ALGORITHM, time, scope, hashlib.sha256(canonical.encode()).hexdigest()))
        signature = hmac.digest(self._key(scope), text.encode(), hashlib.sha256).hex()
        headers["Authorization"] = (
            f"{ALGORITHM} Credential={self.credentials.access_key_id}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return replace(request, headers=headers)

    def _key(self, scope: str) -> bytes:
        key = f"AWS4{self.credentials.secret_access_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), hashlib.sha256)
        return key


def _canonical_request(request: Request, headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the names of the signed headers, and the text whose hash is signed."""
    parts = urlsplit(request.url)
    signed = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    is_default_port = parts.port in (None, _PORTS.get(parts.scheme))
    signed["host"] = f"{parts.hostname}" if is_default_port else f"{parts.hostname}:{parts.port}"
    names = ";".join(sorted(signed))
    lines = (
        "GET" if request.body is None else "POST",
        # Encoded once more than in the URL.
        quote(parts.path or "/", safe="/~"),
        "",
        *(f"{name}:{signed[name]}" for name in sorted(signed)),
        "",
        names,
        hashlib.sha256(request.body or b"").hexdigest(),
    )
    return names, "\n".join(lines)
