"""Push by FCM: what each of its answers means for the message, the device and the channel."""

from types import SimpleNamespace

import pytest

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from providers.fcm.provider import FCM
from tests.support.providers.fcm import TOKENS, Project, push
from tests.support.waiting import LIMIT, SHORT


def refusal(
    fcm: FCM, token: str, *, timeout: float = LIMIT, platform: str = "ios"
) -> ProviderError:
    with pytest.raises(ProviderError) as error:
        fcm.send(push(token, platform=platform), timeout=timeout)
    return error.value


# The device.


@pytest.mark.parametrize(
    ("token", "code", "reason", "action"),
    [
        (
            *("unregistered-1", "UNREGISTERED"),
            *("Device token invalid", RecipientAction.DEACTIVATE),
        ),
        ("invalid-1", "INVALID_ARGUMENT", "Device token malformed", RecipientAction.SUSPECT),
    ],
)
def test_what_is_said_of_the_device_is_about_the_device(
    project: Project, token: str, code: str, reason: str, action: RecipientAction
) -> None:
    error = refusal(project.fcm(), token)
    assert isinstance(error, InvalidRecipientError)
    assert (error.reason, error.action) == (reason, action)
    assert error.code is FailureCode.INVALID_RECIPIENT
    assert error.response is not None
    assert error.response.code == code
    assert len(project.requests()) == 1


# The configuration.


@pytest.mark.parametrize(
    ("token", "status"), [("wrong-project-1", 404), ("no-permission-1", 403), ("redirect-1", 302)]
)
def test_a_mistake_in_the_configuration_is_not_the_devices(
    project: Project, token: str, status: int
) -> None:
    error = refusal(project.fcm(), token)
    assert type(error) is ProviderUnavailableError
    assert error.scope is None
    assert error.response is not None
    assert error.response.status == status
    assert len(project.requests()) == 1


def test_the_wrong_project_in_the_settings_condemns_no_device(project: Project) -> None:
    for token in ("device-1", "unregistered-1", "invalid-1"):
        error = refusal(project.fcm(project_id="another"), token)
        assert type(error) is ProviderUnavailableError
        assert error.reason == "Unknown Firebase project. (404)"


def test_a_key_that_apple_refuses_is_a_matter_of_that_platform_alone(project: Project) -> None:
    for platform in ("ios", "web"):
        error = refusal(project.fcm(), "third-party-auth-1", platform=platform)
        assert isinstance(error, ProviderUnavailableError)
        assert error.scope == platform
    assert [request["status"] for request in project.requests()] == [401, 401]
    assert len(project.requests(TOKENS)) == 1, "our own access token is good"


# The access token.


def test_an_access_token_that_ended_is_replaced_and_the_push_sent_once_more(
    project: Project,
) -> None:
    assert project.fcm().send(push("expired-token-1"), timeout=LIMIT).provider_id
    assert [request["status"] for request in project.requests()] == [401, 200]
    assert len(project.requests(TOKENS)) == 2


def test_an_access_token_refused_for_ever_is_replaced_once(project: Project) -> None:
    error = refusal(project.fcm(), "unauthenticated-1")
    assert type(error) is ProviderUnavailableError
    assert error.response is not None
    assert (error.response.status, error.response.code) == (401, "UNAUTHENTICATED")
    assert [request["status"] for request in project.requests()] == [401, 401]
    assert len(project.requests(TOKENS)) == 2


# The message.


@pytest.mark.parametrize(
    ("token", "code"),
    [("bad-field-1", FailureCode.REJECTED), ("too-large-1", FailureCode.TOO_LARGE)],
)
def test_a_message_that_is_refused_never_goes(
    project: Project, token: str, code: FailureCode
) -> None:
    error = refusal(project.fcm(), token)
    assert type(error) is PermanentError
    assert error.code is code
    assert len(project.requests()) == 1


# The time.


@pytest.mark.parametrize(
    ("token", "shortest", "longest"),
    [("ratelimit-1", 5, 5), ("ratelimit-date-1", 3, 6), ("ratelimit-bare-1", 60, 60)],
)
def test_a_quota_says_when_to_come_again(
    project: Project, token: str, shortest: float, longest: float
) -> None:
    error = refusal(project.fcm(), token)
    assert isinstance(error, TransientError)
    assert error.code is FailureCode.RATE_LIMITED
    assert not error.is_ambiguous
    assert error.retry_after is not None
    assert shortest <= error.retry_after <= longest
    assert len(project.requests()) == 1


@pytest.mark.parametrize(
    ("token", "status"), [("server-error-1", 500), ("bad-gateway-1", 502), ("unavailable-1", 503)]
)
def test_a_problem_of_firebases_own_passes(project: Project, token: str, status: int) -> None:
    error = refusal(project.fcm(), token)
    assert type(error) is TransientError
    assert error.code is FailureCode.PROVIDER_ERROR
    assert not error.is_ambiguous
    assert error.response is not None
    assert error.response.status == status


def test_an_overload_that_lasts_gets_one_post_for_each_send(project: Project) -> None:
    fcm = project.fcm()
    for _ in range(5):
        assert isinstance(refusal(fcm, "unavailable-1"), TransientError)
    assert [request["status"] for request in project.requests()] == [503] * 5
    assert len(project.requests(TOKENS)) == 1


# What nobody can tell.


@pytest.mark.parametrize(
    ("token", "timeout", "code"),
    [
        ("timeout-1", SHORT, FailureCode.TIMEOUT),
        ("timeout-lost-1", SHORT, FailureCode.TIMEOUT),
        ("reset-1", LIMIT, FailureCode.CONNECTION_LOST),
        ("truncated-1", LIMIT, FailureCode.CONNECTION_LOST),
        ("not-json-1", LIMIT, FailureCode.PROVIDER_ERROR),
        ("no-name-1", LIMIT, FailureCode.PROVIDER_ERROR),
    ],
)
def test_a_push_without_an_answer_that_says_so_may_have_gone(
    project: Project, token: str, timeout: float, code: FailureCode
) -> None:
    fcm = project.fcm()
    fcm.send(push(), timeout=LIMIT)
    error = refusal(fcm, token, timeout=timeout)
    assert type(error) is TransientError
    assert error.is_ambiguous
    assert error.code is code
    assert len(project.requests()) == 2, "one POST, and the one before"


# What is accepted.


@pytest.mark.parametrize("token", ["device-1", "slow-1", "dripping-1", "retry-after-1"])
def test_an_acceptance_has_a_name_and_is_not_slept_on(
    project: Project, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("pyfcm.baseapi.time", SimpleNamespace(sleep=slept.append))
    result = project.fcm().send(push(token), timeout=LIMIT)
    assert result.provider_id is not None
    assert result.provider_id.startswith("projects/notify-sandbox/messages/")
    assert not result.is_delivered
    assert len(project.requests()) == 1
    assert slept == []


def test_the_same_device_gets_it_once_firebase_has_recovered(project: Project) -> None:
    fcm = project.fcm()
    assert [type(refusal(fcm, "flaky-1")) for _ in range(2)] == [TransientError] * 2
    assert fcm.send(push("flaky-1"), timeout=LIMIT).provider_id
    assert [request["status"] for request in project.requests()] == [500, 500, 200]
