"""The requests that handlers get: REST framework's, with who sent them."""

from rest_framework.request import Request

from access.clients.inbox_tokens import InboxUser
from access.clients.registry import Client
from notifications.store.inbox import Inbox


class ApiRequest(Request):
    """A request to the API. Other attributes are those of Django's request."""

    request_id: str
    """Set by RequestIdMiddleware."""


class ClientRequest(ApiRequest):
    """A request with an API key."""

    @property
    def client(self) -> Client:
        """The client whose key it is."""
        client: Client = self.user
        return client


class InboxRequest(ApiRequest):
    """A request with an inbox token."""

    @property
    def inbox_user(self) -> InboxUser:
        """The recipient whose token it is."""
        inbox_user: InboxUser = self.user
        return inbox_user

    @property
    def inbox(self) -> Inbox:
        """The inbox that the token opens."""
        return Inbox(self.inbox_user.client_id, self.inbox_user.user_id)
