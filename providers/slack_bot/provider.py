"""Slack's Web API: a bot posts to any channel that it is a member of."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from http import HTTPStatus
from typing import Any

from domain.errors import FailureCode, ProviderResponse
from domain.rooms import RoomKind

from .. import contract, http, room_client, slack_blocks
from ..contract import SendRequest, SendResult
from ..response_rules import ResponseKind as Kind
from ..room_client import GONE, RATE_LIMITED, REDIRECTED, RoomProvider, RoomRule

MAX_ID = 200
EVENT_TYPE = "notification"
RULES: Sequence[RoomRule] = (
    RATE_LIMITED,
    replace(RATE_LIMITED, codes=("ratelimited", "rate_limited")),
    RoomRule(
        ("message_limit_exceeded",),
        Kind.TRANSIENT,
        "The workspace has sent too many messages.",
        FailureCode.RATE_LIMITED,
        is_account=True,
        pause=15 * 60.0,
    ),
    RoomRule(("is_archived",), Kind.INVALID_RECIPIENT, "The channel is archived.", GONE),
    # Slack answers the same for each channel after a change to the token of another workspace, and
    # for a private one that the bot isn't in: what a repair ends is no reason to disable rooms.
    RoomRule(
        ("channel_not_found",),
        Kind.UNAVAILABLE,
        "The channel was deleted, or the bot doesn't see it: invite it.",
    ),
    RoomRule(
        ("not_in_channel",), Kind.UNAVAILABLE, "The bot isn't a member of the channel: invite it."
    ),
    RoomRule(
        (
            "no_permission",
            "restricted_action",
            "restricted_action_read_only_channel",
            "restricted_action_thread_only_channel",
            "restricted_action_non_threadable_channel",
            "ekm_access_denied",
        ),
        Kind.UNAVAILABLE,
        "A rule of the workspace prohibits posting to the channel.",
    ),
    RoomRule(
        ("missing_scope",),
        Kind.UNAVAILABLE,
        "The bot's token lacks the scope chat:write.",
        is_account=True,
    ),
    RoomRule(
        (
            "invalid_auth",
            "not_authed",
            "token_revoked",
            "token_expired",
            "account_inactive",
            "org_login_required",
        ),
        Kind.UNAVAILABLE,
        "Slack rejected the bot's token.",
        is_account=True,
    ),
    RoomRule(("service_unavailable", "team_added_to_org"), Kind.TRANSIENT, "Slack is unavailable."),
    RoomRule(
        ("fatal_error", "internal_error", "request_timeout"),
        Kind.AMBIGUOUS,
        "Slack failed, and may have posted the message.",
    ),
    RoomRule(
        (
            "invalid_arguments",
            "invalid_blocks",
            "invalid_blocks_format",
            "invalid_json",
            "invalid_metadata_format",
            "metadata_too_large",
            "msg_blocks_too_long",
            "msg_too_long",
            "no_text",
            "too_many_attachments",
        ),
        Kind.PERMANENT,
        "Slack rejected the message.",
    ),
    RoomRule((401, 403), Kind.UNAVAILABLE, "Slack rejected the bot's token.", is_account=True),
    RoomRule((404,), Kind.UNAVAILABLE, "No Web API at the configured URL.", is_account=True),
    RoomRule(
        REDIRECTED.codes, Kind.UNAVAILABLE, "No Web API at the configured URL.", is_account=True
    ),
)


@dataclass(frozen=True, kw_only=True)
class SlackBot(RoomProvider):
    """A bot of one workspace."""

    kind = RoomKind.SLACK_BOT
    token: str = field(repr=False)
    name: str = RoomKind.SLACK_BOT.value

    @cached_property
    def account(self) -> str:
        """The account that circuit breaker and rate limiter use."""
        return contract.account_name(self.name, self.base_url, self.token)

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Post one message; see :class:`providers.contract.Provider`."""
        message: dict[str, Any] = {
            "channel": request.scope if self.is_sandbox else request.recipient,
            **slack_blocks.build(request.message),
            "unfurl_links": False,
            "unfurl_media": False,
            "metadata": {
                "event_type": EVENT_TYPE,
                "event_payload": {"reference": request.reference},
            },
        }
        response = await room_client.post(
            request,
            url=f"{self.base_url}/api/chat.postMessage",
            body=room_client.encode(message),
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=timeout,
            clock=self.clock,
        )
        answer = http.decode_object(response.body)
        channel, ts = answer.get("channel"), answer.get("ts")
        if response.status == HTTPStatus.OK and answer.get("ok") is True:
            found = f"{channel}:{ts}" if isinstance(ts, str) and ts else None
            return SendResult(
                provider_id=found and found[:MAX_ID],
                response=ProviderResponse(status=response.status),
                is_delivered=True,
            )
        error = answer.get("error")
        code = error if isinstance(error, str) and answer.get("ok") is False else None
        if response.status == HTTPStatus.OK and code is not None:
            raise room_client.refusal(
                (*RULES, UNKNOWN_ERROR), response, code=code, request=request, now=self.clock()
            )
        raise room_client.refusal(RULES, response, code=code, request=request, now=self.clock())


UNKNOWN_ERROR = RoomRule((200,), Kind.PERMANENT, "Slack rejected the message.")
"""For an error that Slack doesn't document: it says that nothing was posted."""
