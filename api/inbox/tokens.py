"""Issues and revokes inbox tokens."""

from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta
from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients import inbox_tokens
from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.time import utc_now
from notifications.inbox import wakeups as inbox_wakeups
from notifications.models.notification import USER_ID_LENGTH
from notifications.store import Inbox
from notifications.validation import ProblemCollector

from ..http.body import BODY_ERRORS, check_values, convert, decode, read_body
from ..http.paths import path_parameter
from ..http.problems import not_found
from ..http.query import reject_unknown
from ..openapi.operations import describe
from .views import STREAM_PATH


class InboxTokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose inbox a token is for."""

    user_id: Annotated[str, Meta(min_length=1, max_length=USER_ID_LENGTH)]


class InboxTokenView(msgspec.Struct, kw_only=True, frozen=True):
    """A token for one person's inbox. It is not kept: hand it on now, and ask for another later."""

    token: str
    jti: str
    """What it is revoked by."""
    user_id: str
    expires_at: datetime
    stream_url: str
    """Where GET /inbox/stream is answered: it has a process of its own."""


ISSUE = Scope.INBOX_ISSUE
USER_ID = OpenApiParameter("user_id", str, required=True, description="Whose tokens.")


class Tokens(APIView):
    """Those of one person."""

    scopes: ClassVar = {"POST": ISSUE, "DELETE": ISSUE}
    test_mode: ClassVar = {"POST": SafeWrite.NOTHING, "DELETE": SafeWrite.OWN}

    @describe(
        operation="issueInboxToken",
        scope=ISSUE,
        request=InboxTokenRequest,
        response=InboxTokenView,
        status=201,
        problems=BODY_ERRORS,
    )
    def post(self, request: Any) -> Response:
        """Issue a token for one person's inbox. It holds for 15 minutes."""
        raw = decode(read_body(request._request))
        check_values(raw)
        user_id = _check_user_id(convert(raw, InboxTokenRequest).user_id)
        issued = inbox_tokens.issue(client_id=request.user.id, user_id=user_id, now=utc_now())
        view = InboxTokenView(
            token=issued.text,
            jti=issued.jti,
            user_id=user_id,
            expires_at=issued.expires_at,
            stream_url=f"{settings.INBOX_STREAM_URL}{STREAM_PATH}",
        )
        return Response(view, status=201, headers={"Cache-Control": "no-store"})

    @describe(
        operation="revokeInboxTokens",
        scope=ISSUE,
        response=None,
        status=204,
        problems=(400, 422),
        parameters=(USER_ID,),
    )
    def delete(self, request: Any) -> Response:
        """Revoke every token of a person, at once: when they sign out everywhere, say."""
        reject_unknown(request.query_params, allowed=("user_id",))
        user_id = _check_user_id(request.query_params.get("user_id", ""))
        inbox_tokens.revoke_all(client_id=request.user.id, user_id=user_id)
        inbox_wakeups.wake_inbox(Inbox(request.user.id, user_id))
        return Response(status=204)


class InboxTokenDetail(APIView):
    """One of them."""

    scopes: ClassVar = {"DELETE": ISSUE}
    test_mode: ClassVar = {"DELETE": SafeWrite.OWN}

    @describe(
        operation="revokeInboxToken",
        scope=ISSUE,
        response=None,
        status=204,
        problems=(404,),
        parameters=(path_parameter("jti", "What the token's answer says"),),
    )
    def delete(self, request: Any, jti: str) -> Response:
        """Revoke a token, at once; again changes nothing."""
        if not inbox_tokens.revoke(client_id=request.user.id, jti=jti, now=utc_now()):
            raise not_found()
        inbox_wakeups.wake_revoked(jti)
        return Response(status=204)


def _check_user_id(user_id: str) -> str:
    """Return a user id as notifications have one; raises InvalidRequestError."""
    problems = ProblemCollector()
    if not user_id.strip():
        problems.add("/user_id", "required", "Whose inbox? Give a user_id.")
    elif "\x00" in user_id or len(user_id) > USER_ID_LENGTH:
        problems.add("/user_id", "invalid", "Expected a user id of yours.")
    problems.raise_if_any()
    return user_id
