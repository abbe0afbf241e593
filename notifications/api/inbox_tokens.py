"""Inbox tokens, for the apps that hand them to people. Each method calls one service."""

from typing import Any, ClassVar

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients import inbox_tokens
from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.time import utc_now

from ..inbox import wakeups as inbox_wakeups
from ..models.notification import USER_ID_LENGTH
from ..store import Inbox
from ..validation import ProblemCollector
from .inbox import STREAM_PATH
from .inbox_answers import InboxTokenRequest, InboxTokenView
from .parameters import check_names
from .parsing import check_values, convert, decode, read_body
from .problems import not_found
from .schema import describe, identifier

ISSUE = Scope.INBOX_ISSUE
BAD_BODY = (400, 413, 415, 422)
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
        problems=BAD_BODY,
    )
    def post(self, request: Any) -> Response:
        """Issue a token for one person's inbox. It holds for 15 minutes."""
        raw = decode(read_body(request._request))
        check_values(raw)
        user_id = _checked(convert(raw, InboxTokenRequest).user_id)
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
        check_names(request.query_params, allowed=("user_id",))
        user_id = _checked(request.query_params.get("user_id", ""))
        inbox_tokens.revoke_all(client_id=request.user.id, user_id=user_id)
        inbox_wakeups.wake_inbox(Inbox(request.user.id, user_id))
        return Response(status=204)


class OneToken(APIView):
    """One of them."""

    scopes: ClassVar = {"DELETE": ISSUE}
    test_mode: ClassVar = {"DELETE": SafeWrite.OWN}

    @describe(
        operation="revokeInboxToken",
        scope=ISSUE,
        response=None,
        status=204,
        problems=(404,),
        parameters=(identifier("jti", "What the token's answer says"),),
    )
    def delete(self, request: Any, jti: str) -> Response:
        """Revoke a token, at once; again changes nothing."""
        if not inbox_tokens.revoke(client_id=request.user.id, jti=jti, now=utc_now()):
            raise not_found()
        inbox_wakeups.wake_revoked(jti)
        return Response(status=204)


def _checked(user_id: str) -> str:
    """Return a user id as notifications have one; raises InvalidRequest."""
    problems = ProblemCollector()
    if not user_id.strip():
        problems.add("/user_id", "required", "Whose inbox? Give a user_id.")
    elif "\x00" in user_id or len(user_id) > USER_ID_LENGTH:
        problems.add("/user_id", "invalid", "Expected a user id of yours.")
    problems.raise_if_any()
    return user_id
