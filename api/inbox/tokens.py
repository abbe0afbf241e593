"""Issues and revokes inbox tokens."""

from datetime import datetime
from typing import Annotated

import msgspec
from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta

from access.clients import inbox_tokens
from access.clients.authentication import SafeWrite
from access.models import InboxRevocation, Scope
from domain.time import utc_now
from notifications.inbox import wakeups as inbox_wakeups
from notifications.models.notification import USER_ID_LENGTH
from notifications.store.inbox import Inbox
from notifications.validation import ProblemCollector
from notifyproject.platform import audit
from notifyproject.platform.audit import Unaudited

from ..http.body import read_request
from ..http.fields import UserId
from ..http.paths import path_parameter
from ..http.problems import NOT_FOUND
from ..http.query import INVALID_VALUE
from ..http.rendering import Response
from ..http.requests import ClientRequest
from ..openapi.operations import operation
from .views import STREAM_PATH

EXAMPLE_JTI = "q0Vd2pT7wYbJ4mXs"


class InboxTokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for a token that opens the inbox of ``user_id``."""

    user_id: Annotated[UserId, Meta(min_length=1, max_length=USER_ID_LENGTH)]


class InboxTokenView(msgspec.Struct, kw_only=True, frozen=True):
    """A token for one recipient's inbox. It isn't stored."""

    token: Annotated[str, Meta(examples=["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"])]
    jti: Annotated[str, Meta(examples=[EXAMPLE_JTI])]
    """The token's ID, for revoking it."""
    user_id: UserId
    expires_at: datetime
    stream_url: Annotated[str, Meta(examples=["https://stream.example.com/api/v1/inbox/stream"])]
    """The URL of GET /inbox/stream, which a separate process serves."""


ISSUE = Scope.INBOX_ISSUE
USER_ID = OpenApiParameter("user_id", str, required=True, description="The tokens' recipient.")


@operation(
    scope=ISSUE,
    request=InboxTokenRequest,
    response=InboxTokenView,
    status=201,
    test_mode=SafeWrite.NOTHING,
    unaudited=Unaudited.NOTHING,
)
def issue_inbox_token(request: ClientRequest) -> Response:
    """Issue an inbox token. It opens one recipient's inbox for 15 minutes."""
    user_id = _check_user_id(read_request(request, InboxTokenRequest).user_id)
    issued = inbox_tokens.issue(client_id=request.client.id, user_id=user_id, now=utc_now())
    view = InboxTokenView(
        token=issued.text,
        jti=issued.jti,
        user_id=user_id,
        expires_at=issued.expires_at,
        stream_url=f"{settings.INBOX_STREAM_URL}{STREAM_PATH}",
    )
    return Response(view, status=201, headers={"Cache-Control": "no-store"})


@operation(scope=ISSUE, response=None, status=204, parameters=(USER_ID,), test_mode=SafeWrite.OWN)
def revoke_inbox_tokens(request: ClientRequest) -> Response:
    """Revoke all inbox tokens of a recipient, such as when they sign out everywhere."""
    user_id = _check_user_id(request.query_params.get("user_id", ""))
    inbox_tokens.revoke_all(client_id=request.client.id, user_id=user_id)
    inbox_wakeups.send_inbox_wakeup(Inbox(request.client.id, user_id))
    _record(request, user_id, "All tokens of the recipient revoked.")
    return Response(status=204)


@operation(
    scope=ISSUE,
    response=None,
    status=204,
    parameters=(path_parameter("jti", "The token's id", example=EXAMPLE_JTI),),
    test_mode=SafeWrite.OWN,
)
def revoke_inbox_token(request: ClientRequest, jti: str) -> Response:
    """Revoke an inbox token; idempotent."""
    if not inbox_tokens.revoke(client_id=request.client.id, jti=jti, now=utc_now()):
        raise NOT_FOUND.error()
    inbox_wakeups.send_revocation(jti)
    _record(request, jti, "Token revoked.")
    return Response(status=204)


def _record(request: ClientRequest, object_id: str, message: str) -> None:
    audit.record_client_action(
        request.client, model=InboxRevocation, object_id=object_id, message=message
    )


def _check_user_id(user_id: str) -> str:
    """Return a user ID if it is valid. Raises InvalidRequestError otherwise."""
    problems = ProblemCollector()
    if not user_id.strip():
        problems.add("/user_id", "required", "`user_id` is required.")
    elif len(user_id) > USER_ID_LENGTH:
        problems.add("/user_id", "invalid", INVALID_VALUE)
    else:
        problems.check_identifier(user_id, "/user_id")
    problems.raise_if_any()
    return user_id
