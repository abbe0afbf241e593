"""A client of the sandbox's FCM."""

import base64
import json
import time
from dataclasses import dataclass
from typing import Any

import urllib3
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.clients.sandbox import Box, bearer
from tests.support.waiting import LIMIT

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@dataclass(frozen=True, kw_only=True)
class FCMClient:
    box: Box

    @property
    def account(self) -> dict[str, str]:
        """The service account's JSON."""
        return json.loads(self.box.sandbox.service_account.read_text())

    def assertion(
        self,
        *,
        key: rsa.RSAPrivateKey | None = None,
        header: dict[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        """Return a signed assertion. The value None leaves a claim out."""
        now = int(time.time())
        account = self.account
        claims = {
            "iss": account["client_email"],
            "scope": SCOPE,
            "aud": account["token_uri"],
            "iat": now,
            "exp": now + 3600,
            **changes,
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": account["private_key_id"], **(header or {})}
        payload = {name: value for name, value in claims.items() if value is not None}
        signed = f"{encoded(json.dumps(head))}.{encoded(json.dumps(payload))}"
        private = key or serialization.load_pem_private_key(
            account["private_key"].encode(), password=None
        )
        assert isinstance(private, rsa.RSAPrivateKey)
        signature = private.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{encoded(signature)}"

    def ask(self, **fields: str) -> urllib3.BaseHTTPResponse:
        return self.box.http.request(
            "POST", self.account["token_uri"], fields=fields, encode_multipart=False, timeout=LIMIT
        )

    def sign_in(self, **claims: Any) -> str:
        answer = self.ask(grant_type=GRANT, assertion=self.assertion(**claims))
        assert answer.status == 200, answer.data
        return answer.json()["access_token"]

    def post(
        self,
        body: Any,
        *,
        access: str | None = None,
        project: str | None = None,
        timeout: float = LIMIT,
        **headers: str,
    ) -> urllib3.BaseHTTPResponse:
        """POST a body to FCM, by default with a new access token."""
        project = project or self.account["project_id"]
        return self.box.call(
            "POST",
            f"/v1/projects/{project}/messages:send",
            body,
            headers={**bearer(access or self.sign_in()), **headers},
            timeout=timeout,
        )

    def send(self, token: str = "device-1", **changes: Any) -> urllib3.BaseHTTPResponse:
        return self.post({"message": push(token, **changes)})


def push(token: str = "device-1", *, reference: str = "ref-1", **changes: Any) -> dict[str, Any]:
    message = {
        "token": token,
        "notification": {"title": "Your order has shipped", "body": "Hello Ada"},
        "data": {"reference": reference},
        **changes,
    }
    return {name: value for name, value in message.items() if value is not None}


def error(answer: urllib3.BaseHTTPResponse) -> dict[str, Any]:
    found = answer.json()["error"]
    assert found["code"] == answer.status
    return found


def details(answer: urllib3.BaseHTTPResponse) -> dict[str, dict[str, Any]]:
    return {
        detail["@type"].rpartition(".")[2]: detail for detail in error(answer).get("details", [])
    }


def violations(answer: urllib3.BaseHTTPResponse) -> list[str]:
    """Return the fields of a BadRequest."""
    return [
        fieldviolation.get("field", "")
        for fieldviolation in details(answer)["BadRequest"]["fieldViolations"]
    ]


def encoded(part: str | bytes) -> str:
    raw = part.encode() if isinstance(part, str) else part
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
