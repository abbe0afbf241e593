"""Push by Firebase Cloud Messaging's HTTP v1 API.

``pyfcm`` builds the body. Its transport isn't used, because it repeats POSTs after a timeout, which
may send four messages, sleeps on Retry-After, and fetches a token per thread.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import quote

from pyfcm import FCMNotification

from domain.errors import FailureCode, PermanentError, ProviderResponse, ProviderUnavailableError
from notifyproject.platform.egress import Deadline

from .. import http, http_client
from ..contract import NotAttemptedError, Receipt, SendRequest, SendResult, account_name, is_expired
from ..http import Exchange, Request
from . import credentials as fcm_credentials
from .credentials import AccessToken, InvalidCredentialsError, ServiceAccount, TokenCache
from .messages import build_payload
from .responses import SenderHistory, classify_response, read_refusal, rule_for

ACCEPTED = 200
TOKEN_REPLACE_TIMEOUT = 2.0
"""Seconds that a send waits for a new access token. Google takes a few tenths of a second."""
MAX_ID_LENGTH = 200
"""Longer message names are cut; genuine ones are shorter."""


class Client(FCMNotification):
    """pyfcm with its own transport: one POST, and a second only if the token was rejected."""

    def __init__(
        self,
        *,
        tokens: TokenCache,
        sender: SenderHistory,
        base_url: str,
        project: str,
        clock: Callable[[], datetime],
    ) -> None:
        super().__init__(credentials=tokens, project_id=quote(project, safe=""))
        self.FCM_END_POINT_BASE = f"{base_url}/v1/projects"
        self.tokens = tokens
        self._sender = sender
        self._clock = clock

    def send_request(
        self, payload: bytes | None = None, timeout: float = http.TOTAL_TIMEOUT
    ) -> http.Response:
        """Send a body and return FCM's response. ``timeout`` is the total in seconds."""
        return http_client.run_exchange(self.exchange(payload or b"", timeout=timeout))

    def exchange(
        self, payload: bytes, *, timeout: float, request: SendRequest | None = None
    ) -> Exchange[http.Response]:
        """Send a body, unless ``request`` expires before. Raises NotAttemptedError."""
        deadline = Deadline.after(timeout)
        token = self.tokens.current(deadline=deadline)
        response = yield self._build_request(payload, token, deadline, request)
        if response.status != ACCEPTED and rule_for(read_refusal(response)).needs_new_token:
            # FCM rejected the token, so nothing was sent. The wait for a new token is short, since
            # it blocks this thread's other exchanges, which must not miss their responses.
            token_deadline = Deadline(min(deadline.at, Deadline.after(TOKEN_REPLACE_TIMEOUT).at))
            token = self.tokens.replace(token, deadline=token_deadline)
            response = yield self._build_request(payload, token, deadline, request)
        return response

    def parse_response(
        self, response: http.Response, *, token: str = "", platform: str | None = None
    ) -> SendResult:
        """Return the result of an accepted message. Raises ProviderError for other responses."""
        is_accepted = response.status == ACCEPTED
        name = http.decode_object(response.body).get("name") if is_accepted else None
        now = self._clock()
        if not isinstance(name, str) or not name:
            raise classify_response(
                response, sender=self._sender, token=token, platform=platform, now=now
            )
        self._sender.record_accepted(now=now)
        return SendResult(
            provider_id=name[:MAX_ID_LENGTH], response=ProviderResponse(status=response.status)
        )

    def _build_request(
        self, payload: bytes, token: AccessToken, deadline: Deadline, request: SendRequest | None
    ) -> Request:
        if request and is_expired(request, now=self._clock()):
            # The message may have expired during the wait for the token.
            raise NotAttemptedError
        try:
            time_left = deadline.remaining()
        except TimeoutError as error:
            raise ProviderUnavailableError(fcm_credentials.GOOGLE_TIMEOUT_REASON) from error
        return Request(
            url=self.fcm_end_point,
            body=payload,
            headers={
                "Authorization": f"Bearer {token.value}",
                "Content-Type": "application/json; charset=UTF-8",
            },
            timeout=time_left,
        )

    def _get_access_token(self) -> str:
        # For any other part of pyfcm.
        return self.tokens.current(deadline=Deadline.after(http.TOTAL_TIMEOUT)).value


@dataclass(frozen=True, kw_only=True)
class FCM:
    """Provider that sends push messages through one Firebase project."""

    credentials: str = field(repr=False)
    base_url: str
    clock: Callable[[], datetime]
    project_id: str = ""
    """Empty: the project of the service account."""
    name: str = "fcm"

    @property
    def account(self) -> str:
        """The account's name, with a hash of the project and the service account."""
        try:
            project, email = self._project, self._service_account.client_email
        except InvalidCredentialsError:
            project, email = self.project_id, ""
        return account_name(self.name, project, email)

    def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one push message; see :class:`providers.contract.Provider`."""
        return http_client.run_exchange(self.exchange(request, timeout=timeout))

    def is_non_blocking(self, request: SendRequest) -> bool:
        """Return whether a send doesn't have to wait for an access token."""
        try:
            return self._client.tokens.has_token
        except InvalidCredentialsError:
            return True

    def exchange(self, request: SendRequest, *, timeout: float) -> Exchange[SendResult]:
        """Send one push message; see :class:`providers.contract.NonBlockingProvider`."""
        try:
            client = self._client
        except InvalidCredentialsError as error:
            raise ProviderUnavailableError(str(error)) from error
        try:
            payload = client.parse_payload(**self.body(request))
        except ValueError as error:
            raise PermanentError(
                "Can't build the push message.", code=FailureCode.RENDER_FAILED
            ) from error
        response = yield from client.exchange(payload, timeout=timeout, request=request)
        return client.parse_response(response, token=request.recipient, platform=request.platform)

    def body(self, request: SendRequest) -> dict[str, Any]:
        """Return the content of the request body. Raises PermanentError or ValueError."""
        return build_payload(request, now=self.clock())

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Raise ValueError, since FCM has no webhooks: devices send receipts to the API."""
        raise ValueError("FCM sends no webhooks")

    @cached_property
    def _service_account(self) -> ServiceAccount:
        return fcm_credentials.read_service_account(self.credentials)

    @property
    def _project(self) -> str:
        project = self.project_id or self._service_account.project_id
        if not project:
            raise InvalidCredentialsError("No Firebase project is configured.")
        return project

    @cached_property
    def _client(self) -> Client:
        return Client(
            tokens=fcm_credentials.shared_token_cache(self.credentials, clock=self.clock),
            sender=SenderHistory(),
            base_url=self.base_url,
            project=self._project,
            clock=self.clock,
        )
