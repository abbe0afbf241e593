"""Topics and their members. Each method reads, calls one service, and answers."""

from typing import Any, ClassVar

from rest_framework.response import Response
from rest_framework.views import APIView

from access.models import Scope
from domain.time import utc_now
from recipients import topics
from recipients.topics import BY_KEY, TOPIC

from ..validation import FieldProblem, ProblemCollector
from . import paging
from .problems import invalid, not_found
from .recipients_paths import USER_ID, known_id
from .schema import describe, identifier
from .topics_answers import MemberList, MemberView, member_view

PEOPLE = Scope.RECIPIENTS_WRITE
LIST = "topic-members"
NAME = identifier("topic", "a-z, 0-9, _ and -, at most 64", pattern="[a-z0-9][a-z0-9_-]*")


class Members(APIView):
    """Who is told what is broadcast to a topic."""

    scopes: ClassVar = {"GET": PEOPLE}

    @describe(
        operation="listTopicMembers",
        scope=PEOPLE,
        response=MemberList,
        problems=(400, 422),
        parameters=(NAME, *paging.DESCRIBED),
    )
    def get(self, request: Any, topic: str) -> Response:
        """List the members of a topic by user id; a topic is there once it has a member."""
        problems = ProblemCollector()
        asked = paging.parse(request.query_params, of=LIST, problems=problems)
        problems.raise_if_any()
        if not TOPIC.fullmatch(topic):
            raise not_found()
        page = topics.members(topic=topic, limit=asked.limit, place=asked.place)
        results = [member_view(document) for document in page.documents]
        return Response(MemberList(results=results, **paging.cursors(page, of=LIST, order=BY_KEY)))


class OneMember(APIView):
    """One of them."""

    scopes: ClassVar = {"PUT": PEOPLE, "DELETE": PEOPLE}

    @describe(
        operation="joinTopic",
        scope=PEOPLE,
        response=MemberView,
        problems=(404, 422),
        parameters=(NAME, USER_ID),
    )
    def put(self, request: Any, topic: str, user_id: str) -> Response:
        """Make a person a member of a topic; again changes nothing."""
        if not TOPIC.fullmatch(topic):
            expected = (
                "A topic has a-z, 0-9, _ and -, begins with none of the last two, at most 64."
            )
            raise invalid([FieldProblem("", "invalid_topic", expected)])
        return Response(
            member_view(topics.join(topic=topic, user_id=known_id(user_id), now=utc_now()))
        )

    @describe(
        operation="leaveTopic",
        scope=PEOPLE,
        response=None,
        status=204,
        problems=(404,),
        parameters=(NAME, USER_ID),
    )
    def delete(self, request: Any, topic: str, user_id: str) -> Response:
        """End a person's membership of a topic."""
        if not topics.leave(topic=topic, user_id=user_id):
            raise not_found()
        return Response(status=204)
