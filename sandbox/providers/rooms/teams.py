"""Microsoft Teams: a workflow that posts a card when its URL is called.

The trigger answers before the workflow runs. A card that Teams can't post is answered like any
other, and nobody sees it.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...outcomes import Outcome, Outcomes, accepted, refused
from ...responses import ProviderResponse
from .. import network_faults
from ..answers import RefusedError, json_object, json_response
from ..base import IncomingRequest
from .base import LONG, Posted, RoomProvider
from .cards import Card, build, markdown

MAX_MESSAGE = 28 * 1024
"""Bytes of a message, of which a character takes two."""
CARD = "application/vnd.microsoft.card.adaptive"
_QUERY = ("api-version", "sp", "sv", "sig")
_ERRORS: Mapping[str, tuple[str, str]] = {
    "not-found": ("WorkflowNotFound", "The workflow could not be found."),
    "not-enabled": (
        "WorkflowTriggerIsNotEnabled",
        "The workflow's trigger 'manual' is not enabled.",
    ),
    "bad-signature": (
        "DirectApiAuthorizationRequired",
        "The request must be authenticated only by Shared Access scheme.",
    ),
    "forbidden": ("Forbidden", "The environment's policy blocks the request."),
    "bad-schema": ("TriggerInputSchemaMismatch", "The input body doesn't match the schema."),
    "ratelimit": ("RateLimitExceeded", "Rate limit is exceeded. Try again later."),
    "ratelimit-long": ("RateLimitExceeded", "Rate limit is exceeded. Try again later."),
    "server-error": ("InternalServerError", "Encountered internal server error."),
}
OUTCOMES = Outcomes(
    (
        accepted("posted", "202, and the card is posted. So is any other workflow.", status=202),
        accepted("posted-200", "200 in place of 202.", status=200),
        refused("not-found", 404, "404 WorkflowNotFound: the workflow was deleted."),
        refused("not-enabled", 400, "400 WorkflowTriggerIsNotEnabled: it is turned off."),
        refused("bad-signature", 401, "401: the signature in the URL is wrong."),
        refused("forbidden", 403, "403: a policy of the tenant blocks it."),
        refused("bad-schema", 400, "400: the workflow expects another form."),
        refused("ratelimit", 429, "429 with Retry-After."),
        refused(LONG, 429, "429 with Retry-After: 3600."),
        *network_faults.fault_outcomes(202),
        refused("server-error", 500, "500, until the workflow is let through."),
        network_faults.BAD_GATEWAY,
        network_faults.REDIRECT,
    ),
    default="posted",
)


class Teams(RoomProvider):
    """Workflows: ``POST …/workflows/{id}/triggers/manual/paths/invoke?…&sig=…``."""

    name = "teams"
    title = "Microsoft Teams"
    route = r"/{start:(?:powerautomate/automations/direct/(?:cu/[0-9]+/)?)?workflows}/{rest:.*}"
    path = re.compile(
        r"/(?:powerautomate/automations/direct/(?:cu/\d+/)?)?workflows/"
        r"(?P<room>[A-Za-z0-9_-]+)/triggers/manual/paths/invoke"
    )
    max_body = 1024 * 1024
    outcomes = OUTCOMES
    addressing = "The beginning of the workflow's ID in the URL chooses the outcome."

    def unknown_path(self, request: IncomingRequest) -> RefusedError:
        """Return the answer to a URL that is no workflow."""
        return _refused(404, "not-found")

    def read(self, request: IncomingRequest, *, room: str, now: datetime) -> Posted:
        """Return the message, or the trigger's refusal of it."""
        if not all(request.query.get(name) for name in _QUERY):
            raise _refused(401, "bad-signature")
        body = json_object(request)
        if body is None:
            raise _refused(400, "bad-schema")
        return Posted(room=room, body=body)

    def refuse(self, outcome: Outcome, posted: Posted, *, now: datetime) -> ProviderResponse:
        """Return the answer of an outcome that isn't an acceptance."""
        return json_response(outcome.status, _error(outcome.name), self.pause(outcome))

    def accept(
        self, outcome: Outcome, posted: Posted, request: IncomingRequest, *, now: datetime
    ) -> tuple[str | None, ProviderResponse]:
        """Return an answer without a body: it has no ID."""
        return None, ProviderResponse(
            status=outcome.status, headers={"x-ms-request-id": "0"}, mode=outcome.mode
        )

    def flaw(self, posted: Posted) -> str | None:
        """Return why the workflow fails after its answer."""
        attachments = posted.body.get("attachments")
        if posted.body.get("type") != "message" or not isinstance(attachments, list):
            return "The workflow fails: the result of attachments must be a valid array."
        if 2 * len(_encoded(posted.body).decode()) > MAX_MESSAGE:
            return "The workflow fails: MessageSizeExceeded."
        for attachment in attachments:
            content = attachment.get("content") if isinstance(attachment, dict) else None
            if not isinstance(content, dict) or attachment.get("contentType") != CARD:
                return "The workflow fails: no adaptive card."
            if problem := _card_problem(content):
                return f"The workflow fails: {problem}"
        return None if attachments else "The workflow fails: there is no card."

    def card(self, body: Mapping[str, Any]) -> Card:
        """Return a message as the channel shows it."""
        content = _content(body)
        title, paragraphs = "", []
        for block in content.get("body", ()):
            text = str(block.get("text", ""))
            if block.get("style") == "heading" and not title:
                title = re.sub(r"\\(.)", r"\1", text)
            else:
                paragraphs.append(markdown(text))
        buttons = [(a.get("title", ""), a.get("url", "")) for a in content.get("actions", ())]
        return build(title=title, paragraphs=paragraphs, buttons=buttons)


def _content(body: Mapping[str, Any]) -> Mapping[str, Any]:
    attachments = body.get("attachments")
    first = attachments[0] if isinstance(attachments, list) and attachments else None
    content = first.get("content") if isinstance(first, dict) else None
    return content if isinstance(content, dict) and not _card_problem(content) else {}


def _card_problem(card: Mapping[str, Any]) -> str | None:
    if card.get("type") != "AdaptiveCard" or card.get("version") not in ("1.2", "1.3", "1.4"):
        return "unsupported type or version of the card."
    blocks, actions = card.get("body"), card.get("actions", [])
    if not isinstance(blocks, list) or not isinstance(actions, list):
        return "body and actions must be arrays."
    if not all(map(_is_text_block, blocks)):
        return "an element that is no TextBlock, or has no text."
    return None if all(map(_is_link, actions)) else "an action that opens no URL."


def _is_text_block(block: Any) -> bool:
    is_element = isinstance(block, dict) and block.get("type") == "TextBlock"
    return is_element and isinstance(block.get("text"), str) and bool(block["text"])


def _is_link(action: Any) -> bool:
    is_action = isinstance(action, dict) and action.get("type") == "Action.OpenUrl"
    return is_action and str(action.get("url", "")).startswith(("https://", "http://"))


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json_response(200, body).body


def _error(name: str) -> Mapping[str, Any]:
    code, message = _ERRORS[name]
    return {"error": {"code": code, "message": message}}


def _refused(status: int, name: str) -> RefusedError:
    error = _error(name)
    return RefusedError(name, json_response(status, error), error["error"]["message"])
