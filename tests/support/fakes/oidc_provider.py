"""An OpenID provider: discovery, keys, token endpoint, and userinfo, on a real socket.

The test is the browser: it passes the authorization URL to :meth:`Provider.authorize`.
"""

import base64
import contextlib
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from jwt.algorithms import ECAlgorithm

CLIENT, SECRET = "console", "a secret: with/signs%"
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
KEY_ID = "first"


@dataclass
class Provider:
    """One person's provider. Its attributes decide how it answers."""

    issuer: str = ""
    subject: str = "p-1"
    groups: list[str] = field(default_factory=lambda: ["staff-operators"])
    id_claims: dict[str, Any] = field(default_factory=dict)
    """Claims that replace those of the ID token."""
    has_refresh: bool = True
    groups_in: frozenset[str] = frozenset({"id_token", "userinfo"})
    algorithm: str = "ES256"
    key: EllipticCurvePrivateKey = field(default_factory=lambda: generate_private_key(SECP256R1()))
    signing_key: Any = None
    """The key that signs, if it isn't the published one."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Metadata that replaces the provider's own."""
    is_broken: bool = False
    is_userinfo_broken: bool = False
    padding: int = 0
    """Bytes that lengthen the metadata."""
    is_revoked: bool = False
    requests: list[str] = field(default_factory=list)
    redeemed: set[str] = field(default_factory=set)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    refresh_token: str = ""

    def authorize(self, location: str) -> dict[str, str]:
        """Return the parameters of the callback for an authorization URL, as if signed in."""
        url, _, query = location.partition("?")
        assert url == f"{self.issuer}/authorize"
        asked = dict(parse_qsl(query))
        assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe()
        self.codes[code] = asked
        return {"code": code, "state": asked["state"], "iss": self.issuer}

    def sign(self, claims: dict[str, Any], **headers: Any) -> str:
        """Return a signed token with the usual issuer, audience, and times; None omits a claim."""
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300}
        key = None if self.algorithm == "none" else self.signing_key or self.key
        stated = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        return jwt.encode(stated, key, algorithm=self.algorithm, headers={"kid": KEY_ID, **headers})

    def logout_token(self, **claims: Any) -> str:
        """Return a logout token for the person."""
        usual = {"sub": self.subject, "jti": secrets.token_urlsafe(), "events": {LOGOUT_EVENT: {}}}
        return self.sign({**usual, **claims}, typ="logout+jwt")

    def answer(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        """Return the status and the JSON of a response."""
        self.requests.append(path)
        if self.is_broken or (self.is_userinfo_broken and path == "/userinfo"):
            return 500, {}
        if path == "/.well-known/openid-configuration":
            return 200, {**self._usual_metadata(), **self.metadata, "padding": " " * self.padding}
        if path == "/jwks":
            public = json.loads(ECAlgorithm.to_jwk(self.key.public_key()))
            return 200, {"keys": [{**public, "kid": KEY_ID, "use": "sig", "alg": "ES256"}]}
        if path == "/token":
            return self._token(form, authorization)
        if self.is_revoked or authorization != "Bearer access":
            return 401, {"error": "invalid_token"}
        shown = {"groups": self.groups} if "userinfo" in self.groups_in else {}
        return 200, {"sub": self.subject, **shown}

    def _usual_metadata(self) -> dict[str, Any]:
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token"}
        names |= {"jwks_uri": "jwks", "userinfo_endpoint": "userinfo"}
        urls = {name: f"{self.issuer}/{path}" for name, path in names.items()}
        return {"issuer": self.issuer, **urls, "grant_types_supported": ["authorization_code"]}

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, Any]:
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode().split(":")
        if [unquote(part) for part in pair] != [CLIENT, SECRET]:
            return 401, {"error": "invalid_client"}
        if form["grant_type"] == "refresh_token":
            # Replaced at each use: a repeated one is rejected.
            if self.is_revoked or form["refresh_token"] != self.refresh_token:
                return 400, {"error": "invalid_grant"}
            return 200, self._issued({})
        asked = self.codes.get(form["code"])
        challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
        expected = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        if (
            asked is None
            or form["code"] in self.redeemed
            or asked["code_challenge"] != expected
            or asked["redirect_uri"] != form["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        self.redeemed.add(form["code"])
        return 200, self._issued({"nonce": asked["nonce"]})

    def _issued(self, claims: dict[str, Any]) -> dict[str, Any]:
        if "id_token" in self.groups_in:
            claims["groups"] = self.groups
        claims |= {"sub": self.subject, "preferred_username": "rita", "sid": "s-1"}
        claims |= {"email": "rita@example.com", "given_name": "Rita"}
        issued = {"access_token": "access", "token_type": "Bearer"}
        issued["id_token"] = self.sign({**claims, **self.id_claims})
        if self.has_refresh:
            self.refresh_token = issued["refresh_token"] = secrets.token_urlsafe()
        return issued


@contextlib.contextmanager
def serving() -> Iterator[Provider]:
    """Run a provider."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(dict(parse_qsl(body)))

        def _answer(self, form: dict[str, str]) -> None:
            authorization = self.headers.get("Authorization", "")
            status, content = provider.answer(urlsplit(self.path).path, form, authorization)
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Write no line for each request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def callback_path(parameters: dict[str, str]) -> str:
    return f"/admin/oidc/callback/?{urlencode(parameters)}"
