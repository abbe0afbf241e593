"""What the tests of every kind need: an account, recorded answers and events, and signatures."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.errors import FailureCode, ProviderError
from providers import email_spec
from providers.contract import AddressEffect, ReceiptKind
from providers.email_api import EmailApi
from providers.email_kinds import EmailKind
from tests.support.factories.notifications import FIXED_NOON

PASSWORD = "a-password-of-webhooks"
SENDER = "Shop, Inc. <shop@example.com>"
ADDRESS = "ada.lovelace@example.com"
REFERENCE = f"{'5f' * 12}.email.1"
NOW = FIXED_NOON
KEY = "a-canary-of-keys-4711"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A recorded answer other than an acceptance, and its class."""

    status: int
    body: Any
    """Text, or what is sent as JSON."""
    error: type[ProviderError]
    code: FailureCode
    headers: Mapping[str, str] = field(default_factory=dict)
    is_ambiguous: bool = False
    retry_after: float | None = None

    @property
    def raw(self) -> bytes:
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A recorded event, and what it means. None: it is ignored."""

    event: Mapping[str, Any]
    kind: ReceiptKind | None
    effect: AddressEffect | None = None


def basic(raw: bytes, genuine: bool, now: datetime = NOW) -> Mapping[str, str]:
    """Return the headers of a webhook with the right password, or with another."""
    password = PASSWORD if genuine else "another-password"
    return {"authorization": f"Basic {base64.b64encode(f'notify:{password}'.encode()).decode()}"}


def as_json(event: Mapping[str, Any], genuine: bool = True, now: datetime = NOW) -> bytes:
    return json.dumps(event).encode()


def as_list(event: Mapping[str, Any], genuine: bool = True, now: datetime = NOW) -> bytes:
    return json.dumps([event]).encode()


@dataclass(frozen=True, kw_only=True)
class KindCase:
    """One kind under test."""

    name: str
    kind: EmailKind
    options: Mapping[str, str]
    credential: str
    """The name of the secret among the options."""
    secrets: Mapping[str, str]
    accepted: Any
    message_id: str
    answers: Sequence[Answer]
    events: Sequence[Reported]
    sign: Callable[..., Mapping[str, str]] = basic
    """Returns the headers of a webhook, genuine or not, at a time."""
    encode: Callable[..., bytes] = as_json
    """Returns a webhook's body, whose signature may be in it."""
    signs_body: bool = False
    """Whether the signature covers the body."""
    success: int = 200
    api_path: str = ""
    """Of the API, below the provider's own path in the sandbox."""
    key_word: str = ""
    """What the sandbox calls the signing key."""
    refused_key: str = "revoked-key"
    """The sandbox refuses it."""

    def answer(self, code: FailureCode, *, status: int = 0) -> Answer:
        """Return the first answer with a code, and with a status unless it is 0."""
        found = (answer for answer in self.answers if answer.code is code)
        return next(one for one in found if status in (0, one.status) and one.body)

    def account(self, **fields: Any) -> EmailApi:
        options = {**self.options, "api_url": "http://127.0.0.1:1", **fields.pop("options", {})}
        found = email_spec.provider_of(
            self.name,
            kind=self.name,
            options=options,
            secrets=self.secrets,
            mail={"sender": SENDER},
        )
        return type(found)(**{**vars_of(found), "clock": lambda: NOW, **fields})


def vars_of(account: EmailApi) -> dict[str, Any]:
    return {name: getattr(account, name) for name in account.__dataclass_fields__}
