"""Incoming webhooks of Slack: the URL is the credential, and posts to one channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from domain.errors import ProviderResponse
from domain.rooms import RoomKind

from .. import http, room_client, slack_blocks
from ..contract import SendRequest, SendResult
from ..response_rules import ResponseKind as Kind
from ..room_client import GONE, RATE_LIMITED, REDIRECTED, RoomProvider, RoomRule

ACCEPTED = b"ok"
MAX_CODE = 60
RULES: Sequence[RoomRule] = (
    RATE_LIMITED,
    RoomRule(
        ("no_service", "no_active_hooks", "invalid_token", "no_team", "team_disabled"),
        Kind.INVALID_RECIPIENT,
        "Slack doesn't know the webhook any more.",
        GONE,
    ),
    RoomRule(
        ("channel_not_found", "channel_is_archived"),
        Kind.INVALID_RECIPIENT,
        "The channel was deleted or archived.",
        GONE,
    ),
    RoomRule(
        ("action_prohibited", "posting_to_general_channel_denied"),
        Kind.UNAVAILABLE,
        "A rule of the workspace prohibits posting to the channel.",
    ),
    RoomRule(
        (
            "invalid_payload",
            "no_text",
            "invalid_blocks",
            "msg_blocks_too_long",
            "too_many_attachments",
        ),
        Kind.PERMANENT,
        "Slack rejected the message.",
    ),
    RoomRule((404, 410), Kind.INVALID_RECIPIENT, "The webhook was removed.", GONE),
    RoomRule((401, 403), Kind.UNAVAILABLE, "Slack refused the webhook."),
    REDIRECTED,
)


@dataclass(frozen=True, kw_only=True)
class SlackWebhook(RoomProvider):
    """All rooms that are incoming webhooks of Slack."""

    kind = RoomKind.SLACK_WEBHOOK
    sandbox_path = "/services/T0SANDBOX/B0SANDBOX/{room}"
    name: str = RoomKind.SLACK_WEBHOOK.value

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Post one message; see :class:`providers.contract.Provider`."""
        body = room_client.encode(slack_blocks.build(request.message))
        response = await room_client.post(
            request, url=self.url(request), body=body, timeout=timeout, clock=self.clock
        )
        if response.status == HTTPStatus.OK and response.body.strip() == ACCEPTED:
            return SendResult(
                provider_id=None,
                response=ProviderResponse(status=response.status),
                is_delivered=True,
            )
        raise room_client.refusal(
            RULES, response, code=_code(response), request=request, now=self.clock()
        )


def _code(response: http.Response) -> str | None:
    """Return the name of Slack's error, which is the whole body."""
    text = response.text.strip()
    is_name = text.replace("_", "").isalnum() and text.isascii()
    return text if is_name and len(text) <= MAX_CODE else None
