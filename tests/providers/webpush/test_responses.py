"""Responses of push services: of the sandbox, and as they were recorded."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from devices.push_keys import new_key
from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    Reach,
    RecipientAction,
    TransientError,
)
from notifyproject.platform.event_loop import run
from providers.http import Response
from providers.webpush.responses import (
    MISMATCH,
    RECENT_SUCCESS_PERIOD,
    RULES,
    classify_response,
    is_accepted,
    message_id,
    read_refusal,
)
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.webpush import (
    APPLE,
    GOOGLE,
    HOSTS,
    MICROSOFT,
    MOZILLA,
    PushServices,
    push,
)
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

EVERY_HOST = pytest.mark.parametrize("host", HOSTS)


ENDPOINT = f"https://{MOZILLA}/wpush/v2/gAAAAABn?token=BQYAAABn"


def answer(status: int, body: Any = "", **headers: str) -> Response:
    text = body if isinstance(body, str) else json.dumps(body)
    lower = {name.lower().replace("_", "-"): value for name, value in headers.items()}
    return Response(status=status, headers=lower, body=text.encode())


def classified(found: Response, *, is_proven: bool = False) -> ProviderError:
    return classify_response(
        found, endpoint=ENDPOINT, scope=MOZILLA, is_proven=is_proven, now=FIXED_NOON
    )


def mozilla(status: int, number: int, message: str = "") -> Response:
    body = {"code": status, "errno": number, "error": "", "message": message}
    return answer(status, body)


def apple(status: int, reason: str) -> Response:
    return answer(status, {"reason": reason})


OF_ANOTHER_KEY = (
    apple(400, "VapidPkHashMismatch"),
    apple(403, "VapidPkHashMismatch"),
    answer(
        403,
        "the VAPID credentials in the authorization header do not correspond to the credentials "
        "used to create the subscriptions.\n",
    ),
    answer(
        403,
        "the key in the authorization header does not correspond to the sender ID used to "
        "subscribe this user. Please ensure you are using the correct sender ID",
    ),
    answer(400, "<HTML><TITLE>UnauthorizedRegistration</TITLE></HTML>"),
    mozilla(401, 109, "VAPID public key mismatch"),
)
"""As recorded at Apple, Google (2025, 2021, and 2016), and Mozilla."""


@each_case("found", OF_ANOTHER_KEY)
def test_answer_about_the_key_is_the_devices_once_the_key_is_proven(found: Response) -> None:
    error = classified(found, is_proven=True)
    assert isinstance(error, InvalidRecipientError)
    assert (error.action, error.reach) == (RecipientAction.SUSPECT, Reach.UNCERTAIN)
    assert error.response.code == MISMATCH


@each_case("found", OF_ANOTHER_KEY)
def test_answer_about_the_key_is_ours_until_then(found: Response) -> None:
    error = classified(found)
    assert isinstance(error, ProviderUnavailableError)
    assert (error.scope, error.reach) == (MOZILLA, Reach.UNCERTAIN)


@each_case(
    "found",
    [
        mozilla(404, 102, "Invalid URL endpoint"),
        mozilla(410, 103, "Expired URL endpoint"),
        mozilla(410, 105, "Endpoint became unavailable during request"),
        mozilla(410, 106, "No such subscription"),
        apple(410, "Unregistered"),
        answer(410, "push subscription has unsubscribed or expired.\n"),
        answer(404, x_wns_notificationstatus="dropped"),
    ],
)
def test_ended_subscription_deactivates_the_device(found: Response) -> None:
    error = classified(found)
    assert isinstance(error, InvalidRecipientError)
    assert (error.action, error.reach) == (RecipientAction.DEACTIVATE, Reach.RECIPIENT)


@each_case(
    "found",
    [
        apple(403, "BadJwtToken"),
        apple(403, "ExpiredJwtToken"),
        apple(403, "BadVapidPublicKey"),
        apple(400, "BadTtl"),
        apple(400, "BadUrgency"),
        apple(400, "BadWebPushTopic"),
        mozilla(401, 109, "Request did not validate Invalid bearer token: Auth expired"),
        mozilla(400, 110, "Invalid crypto keys"),
        mozilla(400, 111, "Missing TTL Header"),
        mozilla(400, 112, "Invalid TTL"),
        mozilla(400, 113, "Invalid Topic"),
    ],
)
def test_what_is_ours_to_mend_stops_one_service_and_no_device(found: Response) -> None:
    error = classified(found)
    assert type(error) is ProviderUnavailableError
    assert (error.scope, error.reach) == (MOZILLA, Reach.ACCOUNT)


@each_case("found", [answer(401), answer(403, "Forbidden"), answer(302, Location="https://x/")])
def test_refusal_without_a_reason_stops_the_service_after_several(found: Response) -> None:
    error = classified(found)
    assert type(error) is ProviderUnavailableError
    assert (error.scope, error.reach) == (MOZILLA, Reach.UNCERTAIN)


@each_case(
    "found, code, reach, pause",
    [
        (answer(429, Retry_After="7"), FailureCode.RATE_LIMITED, Reach.ACCOUNT, 7),
        (answer(406), FailureCode.RATE_LIMITED, Reach.ACCOUNT, None),
        (apple(429, "TooManyRequests"), FailureCode.RECIPIENT_RATE_LIMITED, Reach.RECIPIENT, 60),
        (
            answer(201, x_wns_notificationstatus="channelthrottled"),
            FailureCode.RECIPIENT_RATE_LIMITED,
            Reach.RECIPIENT,
            60,
        ),
        (
            answer(200, x_wns_notificationstatus="dropped"),
            FailureCode.PROVIDER_ERROR,
            Reach.RECIPIENT,
            None,
        ),
        (answer(500), FailureCode.PROVIDER_ERROR, Reach.ACCOUNT, None),
        (mozilla(502, 901, "Bridge"), FailureCode.PROVIDER_ERROR, Reach.ACCOUNT, None),
        (answer(503, Retry_After="120"), FailureCode.PROVIDER_ERROR, Reach.ACCOUNT, 120),
        (answer(408), FailureCode.PROVIDER_ERROR, Reach.ACCOUNT, None),
    ],
)
def test_failure_is_tried_again(
    found: Response, code: FailureCode, reach: Reach, pause: float | None
) -> None:
    assert not is_accepted(found)
    error = classified(found)
    assert type(error) is TransientError
    assert (error.code, error.reach, error.retry_after) == (code, reach, pause)
    assert (error.scope, error.is_ambiguous) == (MOZILLA, False)


@each_case("status", [504, 524, 204, 299, 100])
def test_undocumented_answer_is_ambiguous(status: int) -> None:
    error = classified(answer(status))
    assert type(error) is TransientError
    assert error.is_ambiguous


@each_case(
    "status, code",
    [(413, FailureCode.TOO_LARGE), (400, FailureCode.REJECTED), (415, FailureCode.REJECTED)],
)
def test_refused_message_is_not_tried_again(status: int, code: FailureCode) -> None:
    error = classified(answer(status))
    assert type(error) is PermanentError
    assert error.code is code


@each_case(
    "found, accepted",
    [
        (answer(201), True),
        (answer(200), True),
        (answer(202), True),
        (answer(201, x_wns_notificationstatus="received"), True),
        (answer(201, X_WNS_NotificationStatus="Received"), True),
        (answer(201, x_wns_notificationstatus="dropped"), False),
        (answer(204), False),
    ],
)
def test_acceptance_needs_a_documented_status(found: Response, *, accepted: bool) -> None:
    assert is_accepted(found) is accepted


@each_case(
    "headers, expected",
    [
        ({"location": "https://updates.push.services.mozilla.com/m/gAAAA"}, "gAAAA"),
        ({"apns-id": "5B1D1AB7"}, "5B1D1AB7"),
        ({"x-wns-msg-id": "1AB7"}, "1AB7"),
        ({}, None),
    ],
)
def test_message_has_the_services_id(headers: Mapping[str, str], expected: str | None) -> None:
    assert message_id(headers) == expected


def test_every_rule_can_match() -> None:
    found = [
        *OF_ANOTHER_KEY,
        *(answer(status) for status in range(200, 600)),
        *(apple(429, "TooManyRequests"), apple(403, "BadJwtToken"), apple(400, "BadTtl")),
        *(mozilla(400, number) for number in (101, 108, 113)),
        mozilla(401, 109),
        *(answer(201, x_wns_notificationstatus=name) for name in ("dropped", "channelthrottled")),
    ]
    matched = {
        next(
            rule.description
            for rule in RULES
            if rule.matches(read_refusal(one), is_proven=is_proven)
        )
        for one in found
        for is_proven in (True, False)
    }
    assert matched == {rule.description for rule in RULES}


def test_endpoint_is_in_no_stored_text() -> None:
    error = classified(answer(400, "no route to /wpush/v2/gAAAAABn, no gAAAAABn, no BQYAAABn"))
    assert "AAABn" not in error.response.excerpt


@EVERY_HOST
def test_sandbox_shows_what_was_sent(services: PushServices, host: str) -> None:
    found = run(services.provider().send(push(services.subscribe(host)), timeout=LIMIT))
    assert (found.response.status, bool(found.provider_id)) == (201, True)
    assert [notification["title"] for notification in services.shown()] == ["Paid"]


@EVERY_HOST
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gone-1", InvalidRecipientError),
        ("not-found-1", InvalidRecipientError),
        ("mismatch-1", ProviderUnavailableError),
        ("unauthorized-1", ProviderUnavailableError),
        ("throttle-1", TransientError),
        ("dropped-1", TransientError),
        ("server-error-1", TransientError),
        ("unavailable-1", TransientError),
        ("bad-gateway-1", TransientError),
        ("redirect-1", ProviderUnavailableError),
        ("too-large-1", PermanentError),
    ],
)
def test_every_service_refuses_in_its_own_words(
    services: PushServices, host: str, name: str, kind: type[ProviderError]
) -> None:
    request = push(services.subscribe(host, name))
    with pytest.raises(ProviderError) as raised:
        run(services.provider().send(request, timeout=LIMIT))
    assert type(raised.value) is kind
    assert services.requests()[-1]["accepted"] is False
    path = f"/push/{host}/{name}"
    assert path not in f"{raised.value.reason} {raised.value.response.excerpt}"


@EVERY_HOST
def test_browser_that_subscribed_with_another_key_is_suspected_beside_one_that_works(
    services: PushServices, host: str
) -> None:
    provider, other = services.provider(), new_key()
    wrong = push(services.subscribe(host, key=other, registered_as=services.key))
    with pytest.raises(ProviderUnavailableError):
        run(provider.send(wrong, timeout=LIMIT))
    run(provider.send(push(services.subscribe(host, "grace", key=services.key)), timeout=LIMIT))
    if host == MICROSOFT:
        # It says of no 401 what was wrong.
        with pytest.raises(ProviderUnavailableError) as unclear:
            run(provider.send(wrong, timeout=LIMIT))
        assert unclear.value.reach is Reach.UNCERTAIN
        return
    with pytest.raises(InvalidRecipientError) as raised:
        run(provider.send(wrong, timeout=LIMIT))
    assert raised.value.response.code == MISMATCH


def test_acceptance_proves_one_key_at_one_service_for_an_hour(services: PushServices) -> None:
    clock = [FIXED_NOON]
    other = new_key()
    provider = services.provider(services.key, other)
    history = provider._history
    history.record_accepted(GOOGLE, services.key.fingerprint, now=clock[0])

    def is_proven(host: str, key: Any, later: timedelta = timedelta(0)) -> bool:
        return history.is_proven(host, key.fingerprint, now=FIXED_NOON + later)

    assert is_proven(GOOGLE, services.key, RECENT_SUCCESS_PERIOD)
    assert not is_proven(GOOGLE, services.key, RECENT_SUCCESS_PERIOD + timedelta(seconds=1))
    assert not is_proven(GOOGLE, other)
    assert not is_proven(APPLE, services.key)
