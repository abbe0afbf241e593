"""Inbox tokens: issuing, authentication, revocation, and the signing key."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from access.checks import check_inbox_signing_key
from access.clients import inbox_tokens
from domain.time import utc_now
from notifyproject.db.collections import collection
from notifyproject.settings.environment import read
from tests.support.clients.api import App, pointers
from tests.support.clients.inbox import InboxUser, claims_of, forged, token
from tests.support.tables import each_case

DAY = timedelta(days=1)


def test_client_gets_a_token_for_a_recipient(app: App) -> None:
    before = utc_now().replace(microsecond=0)
    answer = app.post("/inbox/tokens", {"user_id": "ada"})
    body = answer.json()
    claims = claims_of(body["token"])
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    assert claims.keys() == set(inbox_tokens.CLAIMS)
    assert (claims["sub"], claims["client_id"], claims["aud"]) == ("ada", str(app.id), "inbox")
    assert claims["exp"] - claims["iat"] == 15 * 60
    assert datetime.fromtimestamp(claims["iat"], UTC) >= before
    assert body["expires_at"] == datetime.fromtimestamp(claims["exp"], UTC).strftime("%FT%TZ")
    assert (body["jti"], body["user_id"]) == (claims["jti"], "ada")
    assert body["stream_url"] == f"{settings.PUBLIC_URL}/api/v1/inbox/stream"
    assert InboxUser(app=app, token=body["token"]).get().status_code == 200


def test_every_token_is_unique_and_not_stored(app: App) -> None:
    tokens = [app.post("/inbox/tokens", {"user_id": "ada"}).json()["jti"] for _ in range(3)]
    assert len(set(tokens)) == 3
    assert collection("inbox_revocations").count_documents({}) == 0


@each_case(
    "body, pointer",
    [
        ({"user_id": ""}, "/user_id"),
        ({"user_id": "  "}, "/user_id"),
        ({"user_id": "a" * 129}, "/user_id"),
        ({"user_id": "ada", "ttl": 9999999}, "/ttl"),
    ],
)
def test_invalid_request_is_refused(app: App, body: Any, pointer: str) -> None:
    answer = app.post("/inbox/tokens", body)
    assert (answer.status_code, list(pointers(answer))) == (422, [pointer])


def test_misspelt_condition_revokes_no_token(app: App) -> None:
    """https://github.com/kestra-io/kestra/issues/18246"""
    assert app.delete("/inbox/tokens", user_id="ada", userid="bob").status_code == 400


def test_api_key_opens_no_inbox(app: App) -> None:
    answer = InboxUser(app=app, token=app.key).get()
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="inbox"'


def test_token_is_read_from_the_header_only(app: App) -> None:
    text = token(app)
    for name in ("token", "access_token", "jwt"):
        assert app.http.get("/api/v1/inbox", {name: text}).status_code == 401
        assert InboxUser(app=app, token=text).get(**{name: text}).status_code == 400
    app.http.cookies["token"] = text
    assert app.http.get("/api/v1/inbox").status_code == 401


def _none(text: str) -> str:
    header = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).decode().rstrip("=")
    return f"{header}.{text.split('.')[1]}."


def _with_its_key_inside(text: str) -> str:
    key = "an-attackers-own-key-which-is-long-enough"
    jwk = {"kty": "oct", "k": base64.urlsafe_b64encode(key.encode()).decode()}
    return jwt.encode(claims_of(text), key, algorithm="HS256", headers={"jwk": jwk})


FORGERIES = {
    "another key": lambda text: forged(text, key="x" * 40),
    "no key": _none,
    "no signature": lambda text: text.rpartition(".")[0] + ".",
    "a key it brings along": _with_its_key_inside,
    "another algorithm of the same key": lambda text: forged(text, algorithm="HS512"),
    "the key of sessions": lambda text: forged(text, key=settings.SECRET_KEY),
    "another person": lambda text: ".".join(
        [text.split(".")[0], forged(text, sub="eve").split(".")[1], text.split(".")[2]]
    ),
    "another audience": lambda text: forged(text, aud="admin"),
    "several audiences": lambda text: forged(text, aud=["inbox", "admin"]),
    "another issuer": lambda text: forged(text, iss="evil"),
    "no client": lambda text: forged(text, client_id="$ne"),
    "a client there is not": lambda text: forged(text, client_id="a" * 24),
    "a number for a person": lambda text: forged(text, sub=7),
    "a life of an hour": lambda text: forged(text, exp=claims_of(text)["iat"] + 3600),
    "the far future": lambda text: forged(
        text, iat=claims_of(text)["iat"] + 3600, exp=claims_of(text)["exp"] + 3600
    ),
    "an end that is no number": lambda text: forged(text, exp="never"),
    "an end that is too large": lambda text: forged(text, exp=10**20),
    "an end that is true": lambda text: forged(text, exp=True),
    "an epoch before all": lambda text: forged(text, epoch=-1),
    **{
        f"without {name}": lambda text, n=name: forged(text, **{n: ...})
        for name in inbox_tokens.CLAIMS
    },
    "two tokens": lambda text: f"{text} {text}",
    "nothing": lambda _: "",
    "three dots": lambda _: "...",
    "no base64": lambda text: text.replace(".", ".!", 1),
    "beyond ASCII": lambda text: text + "é",
    "very long": lambda text: text + "a" * 5_000,
}


def test_forged_token_is_refused(app: App) -> None:
    text = token(app)
    assert InboxUser(app=app, token=forged(text)).get().status_code == 200
    for what, forge in FORGERIES.items():
        answer = InboxUser(app=app, token=forge(text) or " ").get()
        assert (what, answer.status_code) == (what, 401)
        assert text not in answer.content.decode()


@each_case("scheme", ["Basic", "Token", "bearer-ish", ""])
def test_other_authorization_scheme_is_refused(app: App, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {token(app)}".strip()}
    assert app.http.get("/api/v1/inbox", headers=headers).status_code == 401


def test_token_expires_after_its_lifetime(app: App) -> None:
    now = utc_now().replace(microsecond=0)
    text = token(app, now=now)
    end = now + inbox_tokens.LIFETIME
    assert inbox_tokens.authenticate(text, now=end - timedelta(milliseconds=1)) is not None
    assert inbox_tokens.authenticate(text, now=end) is None
    assert InboxUser(app=app, token=token(app, now=now - DAY)).get().status_code == 401


def test_revoked_token_is_refused_at_once(app: App) -> None:
    first, other = InboxUser(app=app), InboxUser(app=app)
    jti = claims_of(first.token)["jti"]
    for _ in range(2):
        answer = app.delete(f"/inbox/tokens/{jti}")
        assert (answer.status_code, answer.content) == (204, b"")
    assert first.get().status_code == 401
    assert other.get().status_code == 200


@each_case("jti", ["x", "a" * 48, "$ne", "%E2%82%AC" * 7, "%00"])
def test_unknown_token_is_not_revoked(app: App, jti: str) -> None:
    assert app.delete(f"/inbox/tokens/{jti}").status_code == 404
    assert collection("inbox_revocations").count_documents({}) == 0


def test_revoking_all_tokens_keeps_later_ones(app: App) -> None:
    before, eve = [InboxUser(app=app) for _ in range(2)], InboxUser(app=app, user_id="eve")
    for _ in range(2):
        assert app.delete("/inbox/tokens?user_id=ada").status_code == 204
        after = InboxUser(app=app)
        assert [person.get().status_code for person in (*before, after, eve)] == [
            401,
            401,
            200,
            200,
        ]
        before.append(after)
        before.pop(0)


@each_case("query", ["", "?user_id=", "?user_id=a%00", f"?user_id={'a' * 129}"])
def test_revoking_all_tokens_needs_a_user_id(app: App, query: str) -> None:
    answer = app.delete(f"/inbox/tokens{query}")
    assert (answer.status_code, list(pointers(answer))) == (422, ["/user_id"])


def test_revocation_outlives_the_token(app: App) -> None:
    jti = claims_of(token(app))["jti"]
    app.delete(f"/inbox/tokens/{jti}")
    stored = collection("inbox_revocations").find_one({"_id": f"token:{jti}"})
    assert stored["expires_at"] > utc_now() + inbox_tokens.LIFETIME


@pytest.mark.parametrize("change", [{"is_active": False}, {"scopes": ["notifications:read"]}])
def test_token_ends_when_its_client_cannot_issue(app: App, change: dict[str, Any]) -> None:
    person = InboxUser(app=app)
    collection("api_clients").update_one({"_id": app.id}, {"$set": change})
    assert person.get().status_code == 401


@each_case("key", ["short", "x" * 31])
def test_short_signing_key_stops_the_startup(key: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="INBOX_SIGNING_KEY"):
        read({"INBOX_SIGNING_KEY": key})
    with override_settings(INBOX_SIGNING_KEY=key):
        assert [problem.id for problem in check_inbox_signing_key()] == ["access.E001"]


def test_missing_or_shared_signing_key_fails_the_checks(app: App) -> None:
    assert check_inbox_signing_key() == []
    text = token(app)
    with override_settings(INBOX_SIGNING_KEY=""):
        assert [problem.id for problem in check_inbox_signing_key()] == ["access.E001"]
        assert InboxUser(app=app, token=text).get().status_code == 401
    with override_settings(INBOX_SIGNING_KEY=settings.SECRET_KEY):
        assert [problem.id for problem in check_inbox_signing_key()] == ["access.E002"]
