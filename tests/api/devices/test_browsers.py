"""Browsers with a subscription: by an API key, by an inbox token, and by their service workers."""

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from devices import browser_tokens, queries, subscriptions
from devices.push_keys import VapidKey, new_key
from devices.sealing import unseal
from domain.web_push import encode_base64url
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, pointers
from tests.support.clients.browsers import ENDPOINT, id_of, secrets_of, subscription, text
from tests.support.clients.inbox import InboxUser
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("valkey_anew")
OTHER = ENDPOINT.replace("gAAAAABn", "gBBBBBBo")


@pytest.fixture(autouse=True)
def key(settings: Any) -> VapidKey:
    """Configure web push with one key."""
    found = new_key()
    settings.WEBPUSH_KEYS = (found.private_text,)
    return found


def put(app: App, body: dict[str, Any], **fields: Any) -> Answer:
    return app.put(
        "/devices", {"user_id": "ada", "platform": "web", "subscription": body, **fields}
    )


def worker(app: App, method: str, path: str, token: str, body: Any) -> Answer:
    """Call as the service worker of a browser."""
    return app.send(
        path, json.dumps(body).encode(), method=method, headers={"Authorization": f"Bearer {token}"}
    )


def test_browser_is_registered_and_shown_without_what_suffices_to_push(
    app: App, key: VapidKey
) -> None:
    body = subscription()
    answer = put(app, body, device_model="Firefox on Linux")
    assert answer.status_code == 201
    shown = answer.json()
    assert shown["id"] == id_of(body)
    assert (shown["device_token"], shown["platform"]) == (None, "web")
    assert shown["subscription"] == {
        "host": "updates.push.services.mozilla.com",
        "fingerprint": key.fingerprint,
    }
    stored = collection("devices").find_one({"_id": shown["id"]})
    for secret in secrets_of(body):
        assert secret not in text(stored)
        assert secret not in text(shown)
    found = unseal(subscriptions.sealed(stored))
    assert found.endpoint == body["endpoint"]


def test_same_endpoint_is_the_same_device_with_its_newest_keys(app: App) -> None:
    first, second = subscription(), subscription()
    assert put(app, first).status_code == 201
    assert put(app, second).status_code == 200
    stored = collection("devices").find_one({"_id": id_of(first)})
    found = unseal(subscriptions.sealed(stored))
    assert encode_base64url(found.auth) == second["keys"]["auth"]


def test_token_of_firebase_still_registers_a_browser(app: App) -> None:
    body = {"user_id": "ada", "platform": "web", "device_token": "cXk3-a-token-of-firebase"}
    shown = app.put("/devices", body).json()
    assert (shown["device_token"], shown["subscription"]) == ("cXk3-a…base", None)


@each_case(
    "change, expected",
    [
        ({"endpoint": "https://evil.example/x.google.com/"}, "/subscription/endpoint"),
        ({"endpoint": "http://fcm.googleapis.com/x"}, "/subscription/endpoint"),
        ({"endpoint": "https://127.0.0.1/x"}, "/subscription/endpoint"),
        ({"endpoint": ENDPOINT.replace(".com/", ".com:443/")}, "/subscription/endpoint"),
        ({"keys": {"p256dh": "AA", "auth": "BTBZMqHH6r4Tts7J_aSIgg"}}, "/subscription/keys/p256dh"),
        ({"keys": {"p256dh": "BB", "auth": "AA"}}, "/subscription/keys/auth"),
        ({"application_server_key": "AA"}, "/subscription/application_server_key"),
        ({"endpoint": 1}, "/subscription/endpoint"),
        ({"keys": None}, "/subscription/keys"),
    ],
)
def test_subscription_is_checked(app: App, change: dict[str, Any], expected: str) -> None:
    answer = put(app, subscription(**change))
    assert answer.status_code == 422
    assert expected in pointers(answer)


@each_case(
    "fields, expected",
    [
        ({"platform": "ios"}, {"/platform": "no_browser"}),
        ({"device_token": "cXk3-a-token-of-firebase"}, {"/subscription": "not_both"}),
    ],
)
def test_subscription_is_of_a_browser_alone(
    app: App, fields: dict[str, Any], expected: dict[str, str]
) -> None:
    answer = put(app, subscription(), **fields)
    assert (answer.status_code, pointers(answer)) == (422, expected)


def test_device_needs_a_token_or_a_subscription(app: App) -> None:
    answer = app.put("/devices", {"user_id": "ada", "platform": "web"})
    assert pointers(answer) == {"/device_token": "required"}


def test_key_that_the_service_does_not_have_is_refused(app: App, key: VapidKey) -> None:
    assert put(app, subscription(key=key)).status_code == 201
    answer = put(app, subscription(key=new_key()))
    assert pointers(answer) == {"/subscription/application_server_key": "other_key"}


def test_key_of_the_subscription_is_remembered_after_a_rotation(
    app: App, key: VapidKey, settings: Any
) -> None:
    newest = new_key()
    settings.WEBPUSH_KEYS = (newest.private_text, key.private_text)
    for body, expected in ((subscription(key=key), key), (subscription(OTHER), newest)):
        assert put(app, body).json()["subscription"]["fingerprint"] == expected.fingerprint


def test_without_keys_no_browser_is_registered(app: App, settings: Any) -> None:
    settings.WEBPUSH_KEYS = ()
    assert pointers(put(app, subscription())) == {"/subscription": "not_configured"}
    assert InboxUser(app=app).get("/push").json() == {"application_server_key": None}


def test_subscription_of_the_sandbox_is_taken_where_one_is_configured(
    app: App, settings: Any
) -> None:
    settings.SANDBOX_URL = "http://127.0.0.1:8001"
    body = subscription("http://127.0.0.1:8001/push/web.push.apple.com/ada")
    assert put(app, body).json()["subscription"]["host"] == "web.push.apple.com"


def test_new_subscription_replaces_the_device(app: App) -> None:
    old = put(app, subscription()).json()["id"]
    body = subscription(OTHER)
    answer = app.send(
        f"/devices/{old}", json.dumps({"subscription": body}).encode(), method="PATCH"
    )
    new = answer.json()
    assert (new["id"], new["replaces"]) == (id_of(body), [old])
    assert queries.current(old)["_id"] == new["id"]


def test_page_registers_its_browser_with_an_inbox_token(app: App, key: VapidKey) -> None:
    user, body = InboxUser(app=app), subscription(key=key)
    assert user.get("/push").json() == {"application_server_key": key.public_text}
    sent = {
        "subscription": body,
        "device_model": "Chrome on Linux",
        "language": "pt-PT",
        "timezone": "Etc/Unknown",
    }
    answer = user.put("/push", sent)
    assert answer.status_code == 200
    assert answer.json()["id"] == id_of(body)
    shown = app.get(f"/devices/{id_of(body)}").json()
    assert (shown["user_id"], shown["device_model"]) == ("ada", "Chrome on Linux")
    assert (shown["language"], shown["timezone"]) == ("pt-PT", None)


def test_page_leaves_what_it_cannot_know(app: App) -> None:
    body, known = subscription(), {"app_version": "2.4.0", "os_version": "14.1"}
    put(app, body, **known, device_model="Firefox", language="pt")

    for sent in (
        {"subscription": body},
        {"subscription": subscription(OTHER), "replaces": id_of(body)},
    ):
        device_id = InboxUser(app=app).put("/push", sent).json()["id"]
        shown = app.get(f"/devices/{device_id}").json()
        assert {name: shown[name] for name in known} == known
        assert (shown["device_model"], shown["language"]) == (None, None)

    InboxUser(app=app, user_id="bob").put("/push", {"subscription": subscription(OTHER)})
    shown = app.get(f"/devices/{device_id}").json()
    assert (shown["user_id"], *map(shown.get, known)) == ("bob", None, None)


def test_apps_device_and_a_browsers_do_not_replace_each_other(app: App) -> None:
    app_token = "cXk3-a-token-of-firebase"
    phone = {"user_id": "ada", "platform": "android", "device_token": app_token}
    phone_id = app.put("/devices", phone).json()["id"]
    browser_id = put(app, subscription()).json()["id"]
    for device_id, body, pointer in (
        (phone_id, {"subscription": subscription(OTHER)}, "/subscription"),
        (browser_id, {"device_token": f"{app_token}-2"}, "/device_token"),
    ):
        answer = app.send(f"/devices/{device_id}", json.dumps(body).encode(), method="PATCH")
        assert (answer.status_code, pointers(answer)) == (422, {pointer: "other_kind"})
    body = {"subscription": subscription(OTHER), "replaces": phone_id}
    assert InboxUser(app=app).put("/push", body).status_code == 200
    assert app.get(f"/devices/{phone_id}").json()["is_active"] is True


def test_subscription_replaces_a_browsers_token_of_firebase(app: App) -> None:
    body = {"user_id": "ada", "platform": "web", "device_token": "cXk3-a-token-of-firebase"}
    old = app.put("/devices", body).json()["id"]
    new = {"subscription": subscription(), "replaces": old}
    renewed = InboxUser(app=app).put("/push", new).json()["id"]
    assert app.get(f"/devices/{renewed}").json()["replaces"] == [old]


def test_page_replaces_the_subscription_of_an_earlier_key(app: App) -> None:
    user, first, second = InboxUser(app=app), subscription(), subscription(OTHER)
    old = user.put("/push", {"subscription": first}).json()["id"]
    new = user.put("/push", {"subscription": second, "replaces": old}).json()["id"]
    assert app.get(f"/devices/{new}").json()["replaces"] == [old]
    assert app.get(f"/devices/{old}").json()["deactivation_reason"] == "replaced"


def test_page_replaces_no_device_of_another_person(app: App) -> None:
    mine = InboxUser(app=app, user_id="bob").put("/push", {"subscription": subscription()})
    body = {"subscription": subscription(OTHER), "replaces": mine.json()["id"]}
    InboxUser(app=app).put("/push", body)
    assert app.get(f"/devices/{mine.json()['id']}").json()["is_active"] is True


def test_browser_moves_to_the_person_who_signs_in(app: App) -> None:
    body = subscription()
    for user_id in ("bob", "ada"):
        InboxUser(app=app, user_id=user_id).put("/push", {"subscription": body})
    assert app.get(f"/devices/{id_of(body)}").json()["user_id"] == "ada"


def test_person_turns_push_off_for_their_own_browser(app: App) -> None:
    user, body = InboxUser(app=app), subscription()
    user.put("/push", {"subscription": body})
    path = f"/push/{id_of(body)}"
    assert InboxUser(app=app, user_id="bob").send("DELETE", path).status_code == 204
    assert app.get(f"/devices/{id_of(body)}").json()["is_active"] is True
    for _ in range(2):
        assert user.send("DELETE", path).status_code == 204
    said = [entry.change_message for entry in LogEntry.objects.filter(object_id=id_of(body))]
    assert said.count("By the recipient: Push turned off.") == 1
    shown = app.get(f"/devices/{id_of(body)}").json()
    assert (shown["is_active"], shown["deactivation_reason"]) == (False, "by_user")
    user.put("/push", {"subscription": body})
    assert app.get(f"/devices/{id_of(body)}").json()["is_active"] is True


def test_worker_replaces_its_own_subscription_with_the_token_of_the_registration(
    app: App, key: VapidKey
) -> None:
    registered = InboxUser(app=app).put("/push", {"subscription": subscription()}).json()
    path = f"/devices/{registered['id']}/subscription"
    renewed = worker(app, "PUT", path, registered["token"], subscription(OTHER, key=key))
    assert renewed.status_code == 200
    new = renewed.json()["id"]
    assert app.get(f"/devices/{new}").json()["replaces"] == [registered["id"]]
    # Once more, as the first answer may be lost, and then with the new token.
    assert worker(app, "PUT", path, registered["token"], subscription(OTHER)).json()["id"] == new
    next_path = f"/devices/{new}/subscription"
    third = subscription(f"{ENDPOINT}-3")
    assert worker(app, "PUT", next_path, renewed.json()["token"], third).status_code == 200


def test_token_ends_with_the_registration_for_somebody_else(app: App) -> None:
    """Who keeps it from a shared browser gets no push of the next person."""
    body = {"subscription": subscription()}
    of_ada = InboxUser(app=app).put("/push", body).json()
    of_bea = InboxUser(app=app, user_id="bea").put("/push", body).json()
    path = f"/devices/{of_ada['id']}/subscription"
    assert worker(app, "PUT", path, of_ada["token"], subscription(OTHER)).status_code == 404
    shown = app.get(f"/devices/{of_bea['id']}").json()
    assert (shown["user_id"], shown["is_active"]) == ("bea", True)
    assert worker(app, "PUT", path, of_bea["token"], subscription(OTHER)).status_code == 200


def test_subscription_of_somebody_else_is_named_where_the_request_has_it(app: App) -> None:
    taken = subscription(OTHER)
    put(app, taken, user_id="bea")
    registered = InboxUser(app=app).put("/push", {"subscription": subscription()}).json()
    path = f"/devices/{registered['id']}"
    answer = worker(app, "PUT", f"{path}/subscription", registered["token"], taken)
    assert (answer.status_code, pointers(answer)) == (422, {"/endpoint": "token_in_use"})
    changed = app.send(path, json.dumps({"subscription": taken}).encode(), method="PATCH")
    assert (changed.status_code, pointers(changed)) == (422, {"/subscription": "token_in_use"})


def test_token_is_for_one_device_and_one_purpose(app: App) -> None:
    user = InboxUser(app=app)
    mine, other = (
        user.put("/push", {"subscription": subscription(endpoint)}).json()
        for endpoint in (ENDPOINT, OTHER)
    )
    body = subscription(f"{ENDPOINT}-3")
    foreign = f"/devices/{other['id']}/subscription"
    assert worker(app, "PUT", foreign, mine["token"], body).status_code == 403
    receipt = {"notification_id": "6745e3f09b1d4c2a7f3e8b51", "event": "opened"}
    path = f"/devices/{mine['id']}/receipts"
    assert worker(app, "POST", path, mine["token"], receipt).status_code == 404
    of_push = browser_tokens.issue_for_receipts(
        device_id=mine["id"],
        notification_id=receipt["notification_id"],
    )
    own = f"/devices/{mine['id']}/subscription"
    assert worker(app, "PUT", own, of_push, body).status_code == 404


@each_case("token", ["ntfb_", "ntfb_AAAA", "ntfb_" + "A" * 400, "ntfb_é"])
def test_forged_token_is_refused(app: App, token: str) -> None:
    answer = worker(app, "POST", f"/devices/{'a' * 64}/receipts", token, {})
    assert answer.status_code == 401


def test_other_routes_take_no_token_of_a_browser(app: App) -> None:
    registered = InboxUser(app=app).put("/push", {"subscription": subscription()}).json()
    for method, path in (
        ("GET", f"/devices/{registered['id']}"),
        ("DELETE", f"/devices/{registered['id']}"),
        ("GET", "/notifications"),
        ("GET", "/inbox"),
    ):
        answer = app.send(
            path, b"", method=method, headers={"Authorization": f"Bearer {registered['token']}"}
        )
        assert answer.status_code == 401, path


def test_pages_and_workers_of_known_origins_may_call(app: App, settings: Any) -> None:
    settings.INBOX_ORIGINS = frozenset({"https://app.example.com"})
    device = "a" * 64
    for path, is_open in (
        ("/inbox/push", True),
        (f"/inbox/push/{device}", True),
        (f"/devices/{device}/receipts", True),
        (f"/devices/{device}/subscription", True),
        (f"/devices/{device}", False),
        ("/devices", False),
    ):
        answer = app.http.options(
            f"/api/v1{path}",
            headers={
                "Origin": "https://app.example.com",
                "Access-Control-Request-Method": "PUT",
            },
        )
        allowed = answer.headers.get("Access-Control-Allow-Origin")
        assert allowed == ("https://app.example.com" if is_open else None), path
