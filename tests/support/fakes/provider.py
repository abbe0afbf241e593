"""A scripted provider, and provider outcomes."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from notifications.store import leases
from providers.contract import SendRequest, SendResult, SendTarget
from tests.support.providers import fcm_schema

Outcome = SendResult | ProviderError
Behaviour = Callable[[SendRequest], Outcome]


class ScriptedProvider:
    """A provider with scripted outcomes that records its requests."""

    def __init__(self, behave: Behaviour | None = None, *, name: str = "scripted") -> None:
        self.name = name
        self.account = f"{name}:{ObjectId()}"
        self.behave = behave or (lambda _outbound: accepted())
        self.seen: list[SendRequest] = []

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        self.seen.append(request)
        if request.platform is not None:
            fcm_schema.look_at(request)
        # In a thread: a behavior may block, or send other notifications.
        outcome = await asyncio.to_thread(self.behave, request)
        if isinstance(outcome, ProviderError):
            raise outcome
        return outcome

    def scope(self, target: SendTarget) -> str:
        return target.platform

    def always(self, make: Callable[[], Outcome]) -> None:
        self.behave = lambda _outbound: make()


class Slow:
    """A provider behavior that accepts slowly, and a clock that advances by that time."""

    def __init__(self, *, takes: timedelta, now: datetime) -> None:
        self.takes, self.now = takes, now

    def __call__(self, _outbound: SendRequest) -> SendResult:
        self.now += self.takes
        return accepted()

    def clock(self) -> datetime:
        return self.now


def frozen_after_start(
    monkeypatch: pytest.MonkeyPatch, *, at: datetime, for_: timedelta
) -> Callable[[], datetime]:
    """Return the clock of a process that is frozen between an attempt's start and its send."""
    start, started = leases.start, []

    def start_and_freeze(*args: Any, **options: Any) -> Any:
        started.append(True)
        return start(*args, **options)

    monkeypatch.setattr(leases, "start", start_and_freeze)
    return lambda: at + for_ if started else at


def by_recipient(outcomes: Mapping[str, Callable[[], Outcome]]) -> Behaviour:
    """Return a behavior with outcomes by recipient. Other recipients are accepted."""
    return lambda outbound: outcomes.get(outbound.recipient, accepted)()


def accepted(**details: Any) -> SendResult:
    return SendResult(**{"provider_id": "x-1", "response": ProviderResponse(status=200), **details})


def provider_error(**details: Any) -> TransientError:
    return TransientError("The provider is busy.", **{"code": FailureCode.PROVIDER_ERROR} | details)


def rate_limited(**details: Any) -> TransientError:
    return TransientError("It was too much.", **{"code": FailureCode.RATE_LIMITED} | details)


def unreachable() -> TransientError:
    return TransientError("Nobody listens.", code=FailureCode.CONNECTION_FAILED)


def timeout(**details: Any) -> TransientError:
    return TransientError(
        "No response came.", code=FailureCode.TIMEOUT, is_ambiguous=True, **details
    )


def channel_unavailable(**details: Any) -> ProviderUnavailableError:
    return ProviderUnavailableError("The project is a wrong one.", **details)


def refused() -> PermanentError:
    return PermanentError("The message is refused.", code=FailureCode.REJECTED)


def invalid_token(**details: Any) -> InvalidRecipientError:
    return InvalidRecipientError(
        "Device token invalid", **{"action": RecipientAction.DEACTIVATE} | details
    )


def malformed_token() -> InvalidRecipientError:
    return invalid_token(action=RecipientAction.SUSPECT)
