"""The requests that handlers get: REST framework's, with who sent them."""

from datetime import datetime

from bson import ObjectId
from rest_framework.request import Request

from access.clients.inbox_tokens import InboxUser
from access.clients.registry import Client
from domain.time import utc_now
from notifications.store import test_clocks
from notifications.store.inbox import Inbox


class ApiRequest(Request):
    """A request to the API. Other attributes are those of Django's request."""

    request_id: str
    """Set by RequestIdMiddleware."""
    _clock: datetime | None = None

    @property
    def test_client(self) -> ObjectId | None:
        """The test client that sent it, itself or through an inbox token. None for any other."""
        return None

    def now(self) -> datetime:
        """Return the time by which the request acts: that of a test client's clock, else real time.

        Only the first call for a test client reads its clock. Raises PyMongoError.
        """
        now, client_id = utc_now(), self.test_client
        if client_id is None:
            return now
        if self._clock is None:
            self._clock = test_clocks.now_of(client_id, now=now)
        return max(self._clock, now)

    @property
    def is_ahead(self) -> bool:
        """Whether it has acted by a test client's clock that is ahead of real time."""
        return self._clock is not None and self._clock > utc_now()


class ClientRequest(ApiRequest):
    """A request with an API key."""

    @property
    def client(self) -> Client:
        """The client whose key it is."""
        client: Client = self.user
        return client

    @property
    def test_client(self) -> ObjectId | None:
        """The client, if it is a test client."""
        return self.client.id if self.client.is_test else None


class InboxRequest(ApiRequest):
    """A request with an inbox token."""

    @property
    def inbox_user(self) -> InboxUser:
        """The recipient whose token it is."""
        inbox_user: InboxUser = self.user
        return inbox_user

    @property
    def test_client(self) -> ObjectId | None:
        """The client that issued the token, if it is a test client."""
        return self.inbox_user.client_id if self.inbox_user.is_test else None

    @property
    def inbox(self) -> Inbox:
        """The inbox that the token opens."""
        return Inbox(self.inbox_user.client_id, self.inbox_user.user_id)
