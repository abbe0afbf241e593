"""Workflows of Microsoft Teams: the URL is signed, and its answer says nothing about the post."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from domain.errors import ProviderResponse
from domain.rooms import RoomKind

from .. import http, room_client
from ..contract import SendRequest, SendResult
from ..response_rules import ResponseKind as Kind
from ..room_client import GONE, RATE_LIMITED, REDIRECTED, RoomProvider, RoomRule
from . import cards

ACCEPTED = frozenset({HTTPStatus.OK, HTTPStatus.ACCEPTED})
TURNED_OFF = ("WorkflowTriggerIsNotEnabled", "WorkflowDisabled", "WorkflowSuspended")
MAX_CODE = 60
RULES: Sequence[RoomRule] = (
    RATE_LIMITED,
    RoomRule(TURNED_OFF, Kind.UNAVAILABLE, "The workflow is turned off."),
    RoomRule((404, 410), Kind.INVALID_RECIPIENT, "The workflow was deleted.", GONE),
    RoomRule((401, 403), Kind.UNAVAILABLE, "The workflow refused the signature of its URL."),
    RoomRule((400,), Kind.PERMANENT, "The workflow expects another form of message."),
    REDIRECTED,
)


@dataclass(frozen=True, kw_only=True)
class Teams(RoomProvider):
    """All rooms that are workflows of Teams."""

    kind = RoomKind.TEAMS
    sandbox_path = "/workflows/{room}/triggers/manual/paths/invoke?api-version=1&sp=1&sv=1&sig=1"
    name: str = RoomKind.TEAMS.value

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Post one message; see :class:`providers.contract.Provider`.

        It isn't delivered yet: the workflow may fail after its answer, and reports nothing.
        """
        body = room_client.encode(cards.build(request.message))
        response = await room_client.post(
            request, url=self.url(request), body=body, timeout=timeout, clock=self.clock
        )
        if response.status in ACCEPTED:
            return SendResult(provider_id=None, response=ProviderResponse(status=response.status))
        raise room_client.refusal(
            RULES, response, code=_code(response), request=request, now=self.clock()
        )


def _code(response: http.Response) -> str | None:
    code = http.as_object(http.decode_object(response.body).get("error")).get("code")
    return code[:MAX_CODE] if isinstance(code, str) and code else None
