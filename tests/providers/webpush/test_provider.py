"""The provider: keys of devices, the sandbox in place of real services, and what may fail."""

from dataclasses import replace
from datetime import timedelta

import pytest

from devices import browser_tokens
from devices.push_keys import new_key
from domain.errors import (
    FailureCode,
    PermanentError,
    ProviderUnavailableError,
    Reach,
    TransientError,
)
from domain.time import utc_now
from domain.web_push import Subscription, decode_base64url, fingerprint
from notifyproject.platform.event_loop import run
from providers.contract import NotAttemptedError
from tests.support.providers.webpush import (
    APPLE,
    MOZILLA,
    PUBLIC_URL,
    THREAD,
    PushServices,
    push,
    sealed,
)
from tests.support.waiting import LIMIT, SHORT


def test_each_device_gets_the_key_that_it_subscribed_with(services: PushServices) -> None:
    earlier, newest = new_key(), new_key()
    provider = services.provider(newest, earlier)
    for name, key in (("ada", earlier), ("grace", newest)):
        run(provider.send(push(services.subscribe(name=name, key=key)), timeout=LIMIT))
    assert [request["accepted"] for request in services.requests()] == [True, True]


def test_push_has_the_address_and_the_token_of_its_receipts(services: PushServices) -> None:
    subscription = services.subscribe()
    run(services.provider().send(push(subscription), timeout=LIMIT))
    (notification,) = services.shown()
    data = notification["data"]
    assert data["receipts"] == f"{PUBLIC_URL}/api/v1/devices/{subscription.device_id}/receipts"
    token = browser_tokens.read(data["receipt_token"])
    assert (token.device_id, str(token.notification_id)) == (subscription.device_id, THREAD)


def test_sandbox_takes_the_pushes_for_real_browsers_and_cannot_read_them(
    services: PushServices,
) -> None:
    keys = services.json(MOZILLA, "any")["keys"]
    real = Subscription(
        endpoint="https://wns2-par02p.notify.windows.com/w/?token=BQY%2bA%3d",
        host="wns2-par02p.notify.windows.com",
        p256dh=decode_base64url(keys["p256dh"]),
        auth=decode_base64url(keys["auth"]),
        fingerprint=fingerprint(services.key.public),
    )
    provider = services.provider(stand_in=services.sandbox.url)
    run(provider.send(push(sealed(real)), timeout=LIMIT))
    (request,) = services.requests()
    assert (request["path"], request["accepted"]) == (
        "/push/wns2-par02p.notify.windows.com/w/",
        True,
    )
    assert request["body"]["push"] is None


def test_sandbox_takes_the_pushes_for_its_own_browsers_where_they_are(
    services: PushServices,
) -> None:
    provider = services.provider(stand_in=services.sandbox.url)
    run(provider.send(push(services.subscribe()), timeout=LIMIT))
    (request,) = services.requests()
    assert request["path"].count("/push/") == 1
    assert request["accepted"]


def test_scope_is_the_host_and_only_browsers_are_accepted(services: PushServices) -> None:
    from providers.contract import SendTarget

    provider = services.provider()
    browser = SendTarget(address="", subscription=services.subscribe(APPLE))
    phone = SendTarget(address="a-token-of-firebase", platform="web")
    assert (provider.accepts(browser), provider.scope(browser)) == (True, APPLE)
    assert not provider.accepts(phone)


def test_account_follows_the_newest_key(services: PushServices) -> None:
    first, second = new_key(), new_key()
    assert services.provider(first).account != services.provider(second, first).account
    assert services.provider(first).account == services.provider(first, second).account
    assert first.private_text not in repr(services.provider(first))


@pytest.mark.parametrize("fields", [{"keys": ["no key"]}, {"subject": "mailto:a@localhost"}])
def test_wrong_configuration_makes_every_push_wait(
    services: PushServices, fields: dict[str, object]
) -> None:
    provider = services.provider(**fields)
    with pytest.raises(ProviderUnavailableError) as raised:
        run(provider.send(push(services.subscribe()), timeout=LIMIT))
    assert (raised.value.reach, raised.value.scope) == (Reach.ACCOUNT, None)
    assert services.requests() == []


def test_subscription_that_cannot_be_decrypted_makes_one_push_wait(services: PushServices) -> None:
    broken = replace(services.subscribe(), device_id="0" * 64)
    with pytest.raises(ProviderUnavailableError) as raised:
        run(services.provider().send(push(broken), timeout=LIMIT))
    assert raised.value.reach is Reach.RECIPIENT


def test_expired_push_is_not_sent_even_if_it_cannot_be_decrypted(services: PushServices) -> None:
    found = services.subscribe()
    for subscription in (found, replace(found, device_id="0" * 64)):
        request = push(subscription, expires_at=utc_now() - timedelta(seconds=1))
        with pytest.raises(NotAttemptedError):
            run(services.provider().send(request, timeout=LIMIT))
    assert services.requests() == []


def test_push_to_a_phone_is_refused(services: PushServices) -> None:
    request = replace(push(services.subscribe()), subscription=None)
    with pytest.raises(PermanentError) as raised:
        run(services.provider().send(request, timeout=LIMIT))
    assert raised.value.code is FailureCode.REJECTED


@pytest.mark.parametrize("name", ["timeout-1", "reset-1", "truncated-1"])
def test_unread_answer_is_ambiguous(services: PushServices, name: str) -> None:
    with pytest.raises(TransientError) as raised:
        run(services.provider().send(push(services.subscribe(name=name)), timeout=SHORT))
    assert raised.value.is_ambiguous


@pytest.mark.parametrize("name", ["slow-1", "dripping-1"])
def test_slow_answer_is_read(services: PushServices, name: str) -> None:
    assert run(services.provider().send(push(services.subscribe(name=name)), timeout=LIMIT))
