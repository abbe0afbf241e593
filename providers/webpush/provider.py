"""Push to browsers by the push service that each of them has chosen: RFC 8030."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from urllib.parse import urlsplit

from devices import browser_tokens
from devices.push_keys import InvalidKeysError, read_keys
from devices.sealing import unseal
from domain.errors import (
    FailureCode,
    PermanentError,
    ProviderResponse,
    ProviderUnavailableError,
    Reach,
)
from domain.web_push import SealedSubscription, Subscription
from notifyproject.platform.encryption import DecryptionError

from .. import http_client
from ..contract import (
    NotAttemptedError,
    SendRequest,
    SendResult,
    SendTarget,
    account_name,
    is_expired,
)
from ..http import Request
from .encryption import encrypt
from .messages import ReceiptAddress, build_headers, build_text
from .responses import KeyHistory, classify_response, is_accepted, message_id
from .vapid import Signer

MAX_ID_LENGTH = 200


@dataclass(frozen=True, kw_only=True)
class WebPush:
    """Provider that encrypts a push for one browser, and signs it for the browser's service."""

    keys: Sequence[str] = field(repr=False)
    """Private keys, the newest first."""
    subject: str
    public_url: str
    """Where service workers report what became of a push."""
    home: str
    """The page that a push without a link opens."""
    clock: Callable[[], datetime]
    stand_in: str = ""
    """The sandbox, which takes the requests to all push services. Empty: none does."""
    name: str = "webpush"

    @property
    def account(self) -> str:
        """The account's name, with a hash of the newest key."""
        try:
            public = self._signer.newest.public_text
        except InvalidKeysError:
            public = ""
        return account_name(self.name, public)

    def accepts(self, target: SendTarget) -> bool:
        """Return whether a target is a browser with a subscription."""
        return target.subscription is not None

    def scope(self, target: SendTarget) -> str:
        """Return the host of the push service: Apple's may be down while Mozilla's works."""
        return target.subscription.host if target.subscription else ""

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one push; see :class:`providers.contract.Provider`."""
        sealed = request.subscription
        if sealed is None:
            raise PermanentError("The device has no subscription.", code=FailureCode.REJECTED)
        now = self.clock()
        if is_expired(request, now=now):
            raise NotAttemptedError
        subscription = _unseal(sealed)
        try:
            signer = self._signer
        except InvalidKeysError as error:
            raise ProviderUnavailableError(str(error)) from error
        key = signer.key_for(sealed.fingerprint)
        text = build_text(request, home=self.home, receipts=self._receipts(sealed, request))
        address = urlsplit(subscription.endpoint)
        origin = f"{address.scheme}://{address.netloc}"
        response = await http_client.send(
            Request(
                url=self._url(subscription),
                headers={
                    **build_headers(request, host=sealed.host, now=now),
                    "Authorization": signer.authorization(key, origin=origin, now=now),
                },
                body=encrypt(text, p256dh=subscription.p256dh, auth=subscription.auth),
                timeout=timeout,
            )
        )
        now = self.clock()
        if not is_accepted(response):
            raise classify_response(
                response,
                scope=request.scope,
                is_proven=self._history.is_proven(sealed.host, key.fingerprint, now=now),
                endpoint=subscription.endpoint,
                now=now,
            )
        self._history.record_accepted(sealed.host, key.fingerprint, now=now)
        found = message_id(response.headers)
        return SendResult(
            provider_id=found and found[:MAX_ID_LENGTH],
            response=ProviderResponse(status=response.status),
        )

    def _receipts(self, sealed: SealedSubscription, request: SendRequest) -> ReceiptAddress:
        return ReceiptAddress(
            url=f"{self.public_url}/api/v1/devices/{sealed.device_id}/receipts",
            token=browser_tokens.issue_for_receipts(
                device_id=sealed.device_id,
                notification_id=request.notification_id,
            ),
        )

    def _url(self, subscription: Subscription) -> str:
        if not self.stand_in or subscription.endpoint.startswith(f"{self.stand_in}/push/"):
            return subscription.endpoint
        address = urlsplit(subscription.endpoint)
        query = f"?{address.query}" if address.query else ""
        return f"{self.stand_in}/push/{subscription.host}{address.path}{query}"

    @cached_property
    def _signer(self) -> Signer:
        return Signer(read_keys(self.keys), subject=self.subject)

    @cached_property
    def _history(self) -> KeyHistory:
        return KeyHistory()


def _unseal(sealed: SealedSubscription) -> Subscription:
    try:
        return unseal(sealed)
    except DecryptionError as error:
        raise ProviderUnavailableError(
            f"The browser's subscription can't be decrypted: {error}.", reach=Reach.RECIPIENT
        ) from error
