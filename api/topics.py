"""Topic membership."""

from datetime import datetime

import msgspec
from django.contrib.admin.models import ADDITION, DELETION

from access.models import Scope
from domain.time import utc_now
from notifications.validation import FieldProblem
from notifyproject.platform import audit
from recipients import topics
from recipients.models import TopicMember
from recipients.topics import KEY_ORDER, TOPIC

from .http import paging
from .http.fields import TopicName, UserId, view_of
from .http.paths import USER_ID, new_user_id, path_parameter, user_id_or_404
from .http.problems import NOT_FOUND, VALIDATION_FAILED, validation_failed
from .http.rendering import Response
from .http.requests import ClientRequest
from .openapi.operations import operation


class MemberView(msgspec.Struct, kw_only=True, frozen=True):
    """A member of a topic."""

    user_id: UserId
    topic: TopicName
    created_at: datetime


class MemberList(paging.PageView[MemberView], kw_only=True, frozen=True):
    """A page of members. ``next`` and ``previous`` are values for the parameter ``cursor``."""


READ, WRITE = Scope.RECIPIENTS_READ, Scope.RECIPIENTS_WRITE
LIST, TOPICS = "topic-members", "topics"
NAME = path_parameter(
    "topic", "a-z, 0-9, _ and -, at most 64", example="news", pattern="[a-z0-9][a-z0-9_-]*"
)
INVALID_TOPIC = FieldProblem(
    "", "invalid_topic", "Expected up to 64 of a-z, 0-9, _ and -, beginning with a letter or digit."
)


class TopicView(msgspec.Struct, kw_only=True, frozen=True):
    """A topic with members."""

    name: TopicName


class TopicList(paging.PageView[TopicView], kw_only=True, frozen=True):
    """A page of topics, by name. There is no page before a given one."""


@operation(scope=READ, response=TopicList, parameters=paging.PARAMETERS)
def list_topics(request: ClientRequest) -> Response:
    """List the topics that have members, by name."""
    page_request = paging.parse_page_request(request.query_params, list_name=TOPICS)
    after = None if page_request.cursor is None else str(page_request.cursor.values[0])
    found = topics.names(after=after, limit=page_request.limit + 1)
    shown = found[: page_request.limit]
    following = None
    if len(found) > len(shown):
        following = paging.document_cursor({"_id": shown[-1]}, list_name=TOPICS, order=KEY_ORDER)
    results = [TopicView(name=name) for name in shown]
    return Response(TopicList(results=results, next=following, previous=None))


@operation(scope=READ, response=MemberList, parameters=(NAME, *paging.PARAMETERS))
def list_topic_members(request: ClientRequest, topic: str) -> Response:
    """List the members of a topic by user ID; a topic exists while it has members."""
    page_request = paging.parse_page_request(request.query_params, list_name=LIST)
    if not TOPIC.fullmatch(topic):
        raise NOT_FOUND.error()
    page = topics.members(topic=topic, limit=page_request.limit, cursor=page_request.cursor)
    results = [view_of(MemberView, document) for document in page.documents]
    cursors = paging.page_links(page, list_name=LIST, order=KEY_ORDER)
    return Response(MemberList(results=results, **cursors))


@operation(
    scope=WRITE, response=MemberView, problems=(VALIDATION_FAILED,), parameters=(NAME, USER_ID)
)
def join_topic(request: ClientRequest, topic: str, user_id: str) -> Response:
    """Add a recipient to a topic; idempotent."""
    if not TOPIC.fullmatch(topic):
        raise validation_failed([INVALID_TOPIC])
    now = utc_now()
    joined = topics.join(topic=topic, user_id=new_user_id(user_id), now=now)
    if joined["created_at"] == now:
        _record(request, topic, user_id, "Joined", flag=ADDITION)
    return Response(view_of(MemberView, joined))


@operation(scope=WRITE, response=None, status=204, parameters=(NAME, USER_ID))
def leave_topic(request: ClientRequest, topic: str, user_id: str) -> Response:
    """Remove a recipient from a topic."""
    if not topics.leave(topic=topic, user_id=user_id_or_404(user_id)):
        raise NOT_FOUND.error()
    _record(request, topic, user_id, "Left", flag=DELETION)
    return Response(status=204)


def _record(request: ClientRequest, topic: str, user_id: str, done: str, *, flag: int) -> None:
    audit.record_client_action(
        request.client,
        model=TopicMember,
        object_id=topics.member_id(topic, user_id),
        message=f"{done} the topic {topic}.",
        flag=flag,
    )
