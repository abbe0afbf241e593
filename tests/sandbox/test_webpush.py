"""The push services: what they verify, in whose words they refuse, and what a browser shows."""

import json
import os
import time
from collections.abc import Mapping
from typing import Any

import http_ece
import jwt
import pytest
import urllib3
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sandbox.providers.webpush.browsers import base64url, from_base64url
from tests.support.clients.sandbox import Box
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

KEY = ec.generate_private_key(ec.SECP256R1())
GOOGLE, MOZILLA = "fcm.googleapis.com", "updates.push.services.mozilla.com"
APPLE, MICROSOFT = "web.push.apple.com", "wns2-par02p.notify.windows.com"
PUSH = {
    "web_push": 8030,
    "notification": {"title": "Paid", "body": "Now", "navigate": "https://x/"},
}
TOPIC = "t" * 32


def public(key: ec.EllipticCurvePrivateKey) -> str:
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64url(point)


def authorization(
    audience: str, *, key: ec.EllipticCurvePrivateKey = KEY, **claims: Any
) -> dict[str, str]:
    default = {"aud": audience, "exp": int(time.time()) + 3600, "sub": "mailto:a@example.com"}
    token = jwt.encode(default | claims, key, algorithm="ES256")
    return {"Authorization": f"vapid t={token}, k={public(key)}"}


def subscribe(box: Box, host: str, name: str = "ada", **more: str) -> dict[str, Any]:
    return box.control("POST", "/webpush/subscriptions", {"host": host, "name": name, **more})


def send(
    box: Box,
    subscription: Mapping[str, Any],
    *,
    body: bytes | None = None,
    auth: Mapping[str, str] | None = None,
    **headers: str,
) -> urllib3.BaseHTTPResponse:
    """Push as another implementation than the service's."""
    keys = subscription["keys"]
    if body is None:
        body = http_ece.encrypt(
            json.dumps(PUSH).encode(),
            private_key=ec.generate_private_key(ec.SECP256R1()),
            dh=from_base64url(keys["p256dh"]),
            auth_secret=from_base64url(keys["auth"]),
            salt=os.urandom(16),
            version="aes128gcm",
        )
    path = subscription["endpoint"].removeprefix(box.sandbox.url)
    default = {"TTL": "60", "Content-Encoding": "aes128gcm", "X-WNS-Cache-Policy": "cache"}
    own = {name.replace("_", "-"): value for name, value in headers.items()}
    chosen = authorization(box.sandbox.url) if auth is None else auth
    sent = {name: value for name, value in {**default, **chosen, **own}.items() if value}
    return box.call("POST", path, body, headers=sent, timeout=LIMIT)


@each_case(
    "host, header",
    [(GOOGLE, "Location"), (MOZILLA, "Location"), (APPLE, "apns-id"), (MICROSOFT, "X-WNS-MSG-ID")],
)
def test_push_is_accepted_decrypted_and_shown(shared_box: Box, host: str, header: str) -> None:
    answer = send(shared_box, subscribe(shared_box, host), Urgency="high", Topic=TOPIC)
    assert answer.status == 201
    assert answer.headers[header]
    (request, *_) = shared_box.requests()
    assert request["body"]["push"] == PUSH
    assert request["body"]["headers"]["topic"] == TOPIC
    assert (request["title"], request["recipients"]) == ("Paid", [f"{host}/ada"])
    page = shared_box.get(f"/messages/{request['id']}").data.decode()
    assert "Paid" in page
    assert "https://x/" in page


@each_case("host", [GOOGLE, MOZILLA, APPLE, MICROSOFT])
def test_subscription_of_one_key_takes_no_push_of_another(shared_box: Box, host: str) -> None:
    subscription = subscribe(shared_box, host, application_server_key=public(KEY))
    assert send(shared_box, subscription).status == 201
    other = authorization(shared_box.sandbox.url, key=ec.generate_private_key(ec.SECP256R1()))
    refused = send(shared_box, subscription, auth=other)
    expected = {
        GOOGLE: (403, "do not correspond to the credentials used"),
        MOZILLA: (401, "VAPID public key mismatch"),
        APPLE: (400, "VapidPkHashMismatch"),
        MICROSOFT: (401, ""),
    }
    status, text = expected[host]
    assert refused.status == status
    assert text in refused.data.decode()
    assert shared_box.requests()[0]["outcome"] == "mismatch"


@each_case(
    "claims",
    [
        {"aud": "https://example.com"},
        {"aud": None},
        {"exp": 1},
        {"exp": int(time.time()) + 25 * 3600},
        {"sub": "a@example.com"},
        {"sub": "mailto: a@example.com"},
        {"sub": "mailto:a@localhost"},
        {"sub": None},
    ],
)
def test_authorization_is_verified(shared_box: Box, claims: dict[str, Any]) -> None:
    url = shared_box.sandbox.url
    given = {name: value for name, value in claims.items() if value is not None}
    token = {"aud": url, "exp": int(time.time()) + 60, "sub": "mailto:a@example.com"} | given
    for name, value in claims.items():
        if value is None:
            del token[name]
    signed = jwt.encode(token, KEY, algorithm="ES256")
    auth = {"Authorization": f"vapid t={signed}, k={public(KEY)}"}
    answer = send(shared_box, subscribe(shared_box, APPLE), auth=auth)
    assert (answer.status, answer.json()) == (403, {"reason": "BadJwtToken"})


def test_signature_of_another_key_or_none_is_refused(shared_box: Box) -> None:
    subscription = subscribe(shared_box, MOZILLA)
    other = ec.generate_private_key(ec.SECP256R1())
    forged = authorization(shared_box.sandbox.url, key=other)["Authorization"]
    forged = f"{forged.partition(', k=')[0]}, k={public(KEY)}"
    for auth in ({"Authorization": forged}, {"Authorization": "WebPush x"}, {"Authorization": ""}):
        answer = send(shared_box, subscription, auth=auth)
        assert (answer.status, answer.json()["errno"]) == (401, 109)


@each_case("host, audience", [(APPLE, f"https://{APPLE}"), (GOOGLE, f"https://{GOOGLE}")])
def test_origin_may_be_that_of_the_real_service(shared_box: Box, host: str, audience: str) -> None:
    answer = send(shared_box, subscribe(shared_box, host), auth=authorization(audience))
    assert answer.status == 201


@each_case(
    "host, headers, status, text",
    [
        (MOZILLA, {"TTL": ""}, 400, '"errno": 111'),
        (MOZILLA, {"TTL": "soon"}, 400, '"errno": 112'),
        (MOZILLA, {"TTL": "2592000"}, 201, ""),
        (GOOGLE, {"TTL": "2592000"}, 400, "TTL"),
        (APPLE, {"TTL": "-1"}, 400, "BadTtl"),
        (APPLE, {"Urgency": "urgent"}, 400, "BadUrgency"),
        (APPLE, {"Topic": "t" * 33}, 400, "BadWebPushTopic"),
        # As recorded: 13 and 29 characters are no base64.
        (APPLE, {"Topic": "frenz-ai-done"}, 400, "BadWebPushTopic"),
        (APPLE, {"Topic": "t" * 29}, 400, "BadWebPushTopic"),
        (APPLE, {"Topic": "t" * 12}, 201, ""),
        (MOZILLA, {"Topic": "t" * 29}, 201, ""),
        (MOZILLA, {"Topic": "t t"}, 400, '"errno": 113'),
        (MICROSOFT, {"TTL": "0"}, 400, ""),
        (MICROSOFT, {"TTL": "0", "X_WNS_Cache_Policy": "no-cache"}, 201, ""),
        (APPLE, {"TTL": "0", "X_WNS_Cache_Policy": ""}, 201, ""),
    ],
)
def test_headers_are_checked_by_each_services_rules(
    shared_box: Box, host: str, headers: dict[str, str], status: int, text: str
) -> None:
    answer = send(shared_box, subscribe(shared_box, host), **headers)
    assert answer.status == status, answer.data
    assert text in answer.data.decode()


def test_microsoft_says_in_headers_what_is_wrong(shared_box: Box) -> None:
    subscription = subscribe(shared_box, MICROSOFT)
    conflict = send(shared_box, subscription, TTL="0")
    assert conflict.headers["X-WNS-ERROR-DESCRIPTION"].startswith("Ttl value conflicts")
    for name, status in (("dropped-1", "dropped"), ("throttle-1", "channelthrottled")):
        answer = send(shared_box, subscribe(shared_box, MICROSOFT, name))
        assert (answer.status, answer.headers["X-WNS-NOTIFICATIONSTATUS"]) == (201, status)
        assert shared_box.requests()[0]["accepted"] is False


def test_body_of_4096_bytes_is_the_longest(shared_box: Box) -> None:
    subscription = subscribe(shared_box, MOZILLA)
    assert send(shared_box, subscription, body=bytes(4096)).status == 201
    answer = send(shared_box, subscription, body=bytes(4097))
    assert (answer.status, answer.json()["errno"]) == (413, 104)


def test_push_for_a_real_browser_is_shown_as_encrypted(shared_box: Box) -> None:
    subscription = subscribe(shared_box, GOOGLE)
    assert send(shared_box, subscription, body=os.urandom(200)).status == 201
    request = shared_box.requests()[0]
    assert (request["accepted"], request["body"]["push"]) == (True, None)
    page = shared_box.get(f"/messages/{request['id']}").data.decode()
    assert "Encrypted for a browser" in page


@each_case(
    "body, problem",
    [
        ({"host": "evil.example", "name": "ada"}, "host must be one of"),
        ({"host": GOOGLE, "name": "../ada"}, "name must have"),
        ({"host": GOOGLE}, "not what it should be"),
    ],
)
def test_subscription_is_of_a_push_service(
    shared_box: Box, body: dict[str, str], problem: str
) -> None:
    answer = shared_box.refused("POST", "/webpush/subscriptions", body)
    assert answer.status == 400
    assert problem in answer.data.decode()


def test_only_web_push_has_subscriptions(shared_box: Box) -> None:
    body = {"host": GOOGLE, "name": "ada"}
    assert shared_box.refused("POST", "/fcm/subscriptions", body).status == 400
    assert shared_box.refused("POST", "/nobody/subscriptions", body).status == 404


def test_browsers_survive_a_restart(shared_box: Box) -> None:
    assert subscribe(shared_box, GOOGLE) == subscribe(shared_box, GOOGLE)
    first, second = (subscribe(shared_box, GOOGLE, name)["keys"] for name in ("ada", "grace"))
    assert first != second


@pytest.mark.parametrize("path", ["/push/", "/push/evil.example/x", "/push/fcm.googleapis.com"])
def test_other_paths_are_of_no_service(shared_box: Box, path: str) -> None:
    assert shared_box.call("POST", path, b"", headers={}, timeout=LIMIT).status == 404
