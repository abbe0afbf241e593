"""Slack: incoming webhooks, and ``chat.postMessage`` for a bot."""

import re
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...outcomes import Outcome, Outcomes, accepted, refused
from ...responses import ProviderResponse
from .. import network_faults
from ..answers import RefusedError, json_object, json_response, text_response
from ..base import IncomingRequest
from . import slack_blocks
from .base import LONG, Posted, RoomProvider
from .cards import Card, build, slack

_WEBHOOK_ERRORS: Mapping[str, tuple[int, str]] = {
    "no_service": (404, "the webhook was deleted, or is disabled."),
    "no_active_hooks": (404, "the webhook is disabled."),
    "invalid_token": (403, "the token of the URL is wrong."),
    "channel_not_found": (404, "the channel was deleted."),
    "channel_is_archived": (410, "the channel is archived."),
    "no_team": (404, "the workspace is missing."),
    "team_disabled": (403, "the workspace is disabled."),
    "action_prohibited": (403, "an administrator restricts posting."),
    "posting_to_general_channel_denied": (403, "posting to #general is restricted."),
    "too_many_attachments": (400, "over 100 attachments."),
    "rollup_error": (500, "Slack error."),
}
_API_ERRORS: Mapping[str, str] = {
    "channel_not_found": "there is no such channel, or the bot doesn't see it.",
    "is_archived": "the channel is archived.",
    "not_in_channel": "the bot isn't a member of the channel.",
    "restricted_action": "a preference of the workspace prevents posting.",
    "restricted_action_read_only_channel": "the channel is read-only.",
    "ekm_access_denied": "administrators have suspended posting.",
    "no_permission": "the token lacks a permission.",
    "missing_scope": "the token lacks chat:write.",
    "invalid_auth": "the token is invalid.",
    "token_revoked": "the token was revoked.",
    "token_expired": "the token has expired.",
    "account_inactive": "the token belongs to a deleted bot or workspace.",
    "message_limit_exceeded": "the workspace has sent too many messages.",
    "rate_limited": "200 instead of a 429.",
    "service_unavailable": "Slack is unavailable.",
    "team_added_to_org": "the workspace is being moved.",
    "fatal_error": "some of the operation may have succeeded.",
    "internal_error": "some of the operation may have succeeded.",
    "msg_too_long": "the text is too long.",
    "as_user_not_supported": "an error that concerns nothing of the message.",
}
RATE = "ratelimit"
NOT_OK, EMPTY = "not-ok", "empty"
_RATES = (
    refused(RATE, 429, "429 with Retry-After."),
    refused(LONG, 429, "429 with Retry-After: 3600."),
    refused(
        "ratelimit-once",
        429,
        "The same 429 once for a room, then accepted; then from the start.",
        initial_failures=1,
    ),
)
_SERVER = (
    refused(
        "flaky",
        500,
        "500 twice for a room, then accepted; then from the start.",
        initial_failures=2,
    ),
    refused("server-error", 500, "500, until the room is let through."),
    refused("unavailable", 503, "503."),
    network_faults.BAD_GATEWAY,
    network_faults.REDIRECT,
)


def _name(error: str) -> str:
    return error.replace("_", "-")


WEBHOOK_OUTCOMES = Outcomes(
    (
        accepted("posted", "Posted. So is every room that is not in this table."),
        *(
            refused(_name(error), status, f"{status} {error}: {text}")
            for error, (status, text) in _WEBHOOK_ERRORS.items()
        ),
        refused("gone", 410, "410 without a text."),
        *_RATES,
        accepted(NOT_OK, "Posted, but the 200 has another text than ok."),
        *network_faults.fault_outcomes(200),
        *_SERVER,
    ),
    default="posted",
)
API_OUTCOMES = Outcomes(
    (
        accepted("posted", "Posted. So is every channel that is not in this table."),
        *(
            refused(_name(error), 200, f"200 with {error}: {text}")
            for error, text in _API_ERRORS.items()
        ),
        *_RATES,
        accepted(EMPTY, "Posted, but the 200 is an empty object."),
        *network_faults.fault_outcomes(200),
        *_SERVER,
    ),
    default="posted",
)
_ERROR_OF = {_name(error): error for table in (_WEBHOOK_ERRORS, _API_ERRORS) for error in table}
TOKENS: Mapping[str, str] = {
    "xoxb-invalid": "invalid_auth",
    "xoxb-revoked": "token_revoked",
    "xoxb-expired": "token_expired",
    "xoxb-inactive": "account_inactive",
    "xoxb-noscope": "missing_scope",
}
"""Bot tokens that Slack refuses, with its errors."""


def slack_card(body: Mapping[str, Any]) -> Card:
    """Return a message of blocks, or of text alone, as a channel shows it."""
    title, paragraphs, buttons = "", [], []
    for block in body.get("blocks") or ():
        match block["type"]:
            case "header":
                title = block["text"]["text"]
            case "section":
                texts = [block["text"]] if "text" in block else []
                paragraphs += [slack(text["text"]) for text in (*texts, *block.get("fields", ()))]
            case "context":
                texts = block["elements"]
                paragraphs += [f"<small>{slack(text['text'])}</small>" for text in texts]
            case "actions":
                buttons += [(b["text"]["text"], b.get("url", "")) for b in block["elements"]]
    if not body.get("blocks"):
        paragraphs = [slack(str(body.get("text", "")))]
    return build(title=title, paragraphs=paragraphs, buttons=buttons)


class SlackWebhook(RoomProvider):
    """Incoming webhooks: ``POST /services/{team}/{webhook}/{token}``."""

    name = "slack_webhook"
    title = "Slack webhook"
    route = "/services/{rest:.*}"
    path = re.compile(r"/services/T[A-Z0-9]+/B[A-Z0-9]+/(?P<room>[A-Za-z0-9_-]+)")
    max_body = 1024 * 1024
    outcomes = WEBHOOK_OUTCOMES
    addressing = "The beginning of the token, the last part of the URL, chooses the outcome."

    def unknown_path(self, request: IncomingRequest) -> RefusedError:
        """Return Slack's answer to a URL that is no webhook."""
        reason = "There is no such webhook."
        return RefusedError("no-service", text_response(404, "no_service"), reason)

    def read(self, request: IncomingRequest, *, room: str, now: datetime) -> Posted:
        """Return the message, or Slack's refusal of it."""
        body = json_object(request)
        if body is None:
            raise _refused_text("invalid_payload", "The body is no JSON object.")
        blocks = body.get("blocks")
        if not body.get("text") and not blocks:
            raise _refused_text("no_text", "There is neither text nor blocks.")
        if blocks is not None and (found := slack_blocks.violations(blocks)):
            raise _refused_text("invalid_blocks", "; ".join(found))
        if blocks and slack_blocks.text_length(blocks) > slack_blocks.MAX_ALL_BLOCKS:
            raise _refused_text("msg_blocks_too_long", "The blocks are too long.")
        return Posted(room=room, body=body)

    def refuse(self, outcome: Outcome, posted: Posted, *, now: datetime) -> ProviderResponse:
        """Return the answer of an outcome that isn't an acceptance."""
        headers = self.pause(outcome)
        text = _ERROR_OF.get(outcome.name, "rate_limited" if headers else "")
        return text_response(outcome.status, text, headers)

    def accept(
        self, outcome: Outcome, posted: Posted, request: IncomingRequest, *, now: datetime
    ) -> tuple[str | None, ProviderResponse]:
        """Return ``ok``: an incoming webhook returns no ID."""
        text = "<html>Welcome</html>" if outcome.name == NOT_OK else "ok"
        response = text_response(200, text)
        return None, _in_mode(response, outcome)

    def card(self, body: Mapping[str, Any]) -> Card:
        """Return a message as the channel shows it."""
        return slack_card(body)


class SlackBot(RoomProvider):
    """The Web API: ``POST /api/chat.postMessage``."""

    name = "slack_bot"
    title = "Slack bot"
    route = "/api/{method:chat\\.postMessage}"
    path = re.compile(r"/api/chat\.postMessage")
    max_body = 1024 * 1024
    outcomes = API_OUTCOMES
    addressing = "The beginning of the channel's name chooses the outcome; case is ignored."

    def unknown_path(self, request: IncomingRequest) -> RefusedError:
        """Return Slack's answer to another method."""
        return self._error("invalid_post_type", "It is no POST.")

    def read(self, request: IncomingRequest, *, room: str, now: datetime) -> Posted:
        """Return the message, or Slack's refusal of it."""
        token = request.bearer_token()
        if token is None:
            raise self._error("not_authed", "There is no token.")
        if token in TOKENS or not token.startswith("xoxb-"):
            raise self._error(TOKENS.get(token, "invalid_auth"), "The token is refused.")
        body = json_object(request)
        if body is None:
            raise self._error("invalid_json", "The body is no JSON object.")
        channel, text, blocks = body.get("channel"), body.get("text"), body.get("blocks")
        if not isinstance(channel, str) or not channel:
            raise self._error("invalid_arguments", "There is no channel.")
        if not text and not blocks:
            raise self._error("no_text", "There is neither text nor blocks.")
        if len(text or "") > slack_blocks.MAX_TEXT:
            raise self._error("msg_too_long", "The text is too long.")
        if blocks is not None and (found := slack_blocks.violations(blocks)):
            raise self._error("invalid_blocks", "; ".join(found), messages=found)
        if blocks and slack_blocks.text_length(blocks) > slack_blocks.MAX_ALL_BLOCKS:
            raise self._error("msg_blocks_too_long", "The blocks are too long.")
        metadata = body.get("metadata")
        if metadata is not None and not _is_metadata(metadata):
            raise self._error("invalid_metadata_format", "The metadata has another form.")
        return Posted(room=channel, body=body)

    def refuse(self, outcome: Outcome, posted: Posted, *, now: datetime) -> ProviderResponse:
        """Return the answer of an outcome that isn't an acceptance."""
        headers = self.pause(outcome)
        error = "ratelimited" if headers else "internal_error"
        return json_response(outcome.status, {"ok": False, "error": error}, headers)

    def accept(
        self, outcome: Outcome, posted: Posted, request: IncomingRequest, *, now: datetime
    ) -> tuple[str | None, ProviderResponse]:
        """Return the channel and ``ts``, which is the message's ID; or an error with status 200."""
        if not outcome.accepted and (error := _ERROR_OF.get(outcome.name)):
            return None, json_response(200, {"ok": False, "error": error})
        ts = f"{now.timestamp():.0f}.{secrets.randbelow(10**6):06d}"
        body: dict[str, Any] = {
            "ok": True,
            "channel": posted.room,
            "ts": ts,
            "message": {"type": "message", "subtype": "bot_message", "ts": ts},
        }
        response = json_response(200, {} if outcome.name == EMPTY else body)
        return f"{posted.room}:{ts}", _in_mode(response, outcome)

    def card(self, body: Mapping[str, Any]) -> Card:
        """Return a message as the channel shows it."""
        return slack_card(body)

    def _error(self, error: str, reason: str, *, messages: list[str] | None = None) -> RefusedError:
        metadata = {"response_metadata": {"messages": messages}} if messages else {}
        body = {"ok": False, "error": error, **metadata}
        return RefusedError(_name(error), json_response(200, body), f"{error}: {reason}")


def _is_metadata(metadata: Any) -> bool:
    return (
        isinstance(metadata, dict)
        and isinstance(metadata.get("event_type"), str)
        and isinstance(metadata.get("event_payload"), dict)
    )


def _refused_text(error: str, reason: str) -> RefusedError:
    return RefusedError(_name(error), text_response(400, error), f"{error}: {reason}")


def _in_mode(response: ProviderResponse, outcome: Outcome) -> ProviderResponse:
    return ProviderResponse(
        status=response.status, body=response.body, headers=response.headers, mode=outcome.mode
    )
