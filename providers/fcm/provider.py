"""Push by Firebase Cloud Messaging's HTTP v1 API.

``pyfcm`` builds the body. Its transport isn't used, because it repeats POSTs after a timeout, which
may send four messages, sleeps on Retry-After, and fetches a token per thread.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import quote

from pyfcm import FCMNotification

from domain.errors import FailureCode, PermanentError, ProviderResponse, ProviderUnavailableError
from notifyproject.platform.egress import Deadline

from .. import http, http_client
from ..contract import (
    NotAttemptedError,
    SendRequest,
    SendResult,
    SendTarget,
    account_name,
    is_expired,
)
from ..http import Request
from . import credentials as fcm_credentials
from .credentials import AccessToken, InvalidCredentialsError, ServiceAccount, TokenCache
from .messages import build_payload
from .responses import SenderHistory, classify_response, read_refusal, rule_for

ACCEPTED = 200
MAX_ID_LENGTH = 200
"""Longer message names are cut; genuine ones are shorter."""


class Client(FCMNotification):
    """The client of pyfcm, with our transport. It repeats a POST only if its token was rejected."""

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

    async def send_payload(
        self, payload: bytes, *, timeout: float, request: SendRequest | None = None
    ) -> http.Response:
        """Send a body and return FCM's response, within ``timeout`` seconds in total.

        Raises NotAttemptedError if ``request`` expires before.
        """
        deadline = Deadline.after(timeout)
        token = await self.tokens.current(deadline=deadline)
        response = await http_client.send(self._build_request(payload, token, deadline, request))
        if response.status != ACCEPTED and rule_for(read_refusal(response)).needs_new_token:
            # Rejected for the token, so nothing was sent.
            token = await self.tokens.replace(token, deadline=deadline)
            response = await http_client.send(
                self._build_request(payload, token, deadline, request)
            )
        return response

    def parse_response(
        self, response: http.Response, *, token: str = "", scope: str | None = None
    ) -> SendResult:
        """Return the result of an accepted message. Raises ProviderError for other responses."""
        is_accepted = response.status == ACCEPTED
        name = http.decode_object(response.body).get("name") if is_accepted else None
        now = self._clock()
        if not isinstance(name, str) or not name:
            raise classify_response(
                response, sender=self._sender, token=token, scope=scope, now=now
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

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one push message; see :class:`providers.contract.Provider`."""
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
        response = await client.send_payload(payload, timeout=timeout, request=request)
        return client.parse_response(response, token=request.recipient, scope=request.scope)

    def accepts(self, target: SendTarget) -> bool:
        """Return whether a target has a token of Firebase."""
        return target.subscription is None

    def scope(self, target: SendTarget) -> str:
        """Return the platform: Apple's key may be invalid while Android works."""
        return target.platform

    def body(self, request: SendRequest) -> dict[str, Any]:
        """Return the content of the request body. Raises PermanentError or ValueError."""
        return build_payload(request, now=self.clock())

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
