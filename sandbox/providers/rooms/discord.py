"""Discord: webhooks, with the bucket of each and the ban of an address that ignores refusals."""

import math
import re
import secrets
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ...outcomes import Outcome, Outcomes, accepted, refused
from ...responses import ProviderResponse
from .. import network_faults
from ..answers import RefusedError, json_object, json_response, text_response
from ..base import IncomingRequest, RequestResult
from .base import LONG, LONG_PAUSE, PAUSES, Posted, RoomProvider
from .cards import Card, build, markdown

BUCKET_SIZE, BUCKET_SECONDS = 5, 2.0
BAN_AFTER, BAN_WINDOW = 50, 600.0
"""Answers of 401, 403, and 429 in ten minutes. At Discord they are 10,000."""
INVALID = frozenset({401, 403, 429})
MAX_CONTENT, MAX_EMBEDS, MAX_TITLE, MAX_DESCRIPTION = 2_000, 10, 256, 4_096
MAX_FIELDS, MAX_FIELD_NAME, MAX_FIELD_VALUE, MAX_FOOTER = 25, 256, 1_024, 2_048
MAX_ALL_EMBEDS = 6_000
_ERRORS: Mapping[str, tuple[int, str]] = {
    "unknown-webhook": (10015, "Unknown Webhook"),
    "invalid-token": (50027, "Invalid Webhook Token"),
    "missing-permissions": (50013, "Missing Permissions"),
    "blocked": (40333, "internal network error"),
    "server-error": (0, "500: Internal Server Error"),
    "unavailable": (0, "503: Service Unavailable"),
}
NO_ID, SHARED, GLOBAL = "no-id", "ratelimit-shared", "ratelimit-global"
OUTCOMES = Outcomes(
    (
        accepted("posted", "Posted. So is every token that is not in this table."),
        refused("unknown-webhook", 404, "404 with 10015: the webhook was deleted."),
        refused("invalid-token", 401, "401 with 50027: the token of the URL is wrong."),
        refused("missing-permissions", 403, "403 with 50013."),
        refused("blocked", 403, "403 with 40333, as Cloudflare answers a blocked address."),
        refused("ratelimit", 429, "429 with retry_after in fractions of a second."),
        refused(LONG, 429, "429 with Retry-After: 3600."),
        refused(SHARED, 429, "429 of the channel's own limit, with X-RateLimit-Scope: shared."),
        refused(GLOBAL, 429, "429 with global: true, which concerns the whole address."),
        accepted(NO_ID, "Posted, but the 200 has no ID."),
        *network_faults.fault_outcomes(200),
        refused("server-error", 500, "500, until the webhook is let through."),
        refused("unavailable", 503, "503."),
        network_faults.BAD_GATEWAY,
        network_faults.REDIRECT,
    ),
    default="posted",
)


class Discord(RoomProvider):
    """Webhooks: ``POST /api/webhooks/{id}/{token}?wait=true``."""

    name = "discord"
    title = "Discord"
    route = r"/api/{start:(?:v[0-9]+/)?webhooks}/{rest:.*}"
    path = re.compile(r"/api/(?:v\d+/)?webhooks/(?P<webhook>\d{17,20})/(?P<room>[A-Za-z0-9_-]+)")
    max_body = 1024 * 1024
    outcomes = OUTCOMES
    addressing = "The beginning of the token, the last part of the URL, chooses the outcome."

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request, and count an invalid one towards the ban."""
        at = now.timestamp()
        invalid = self._recent("invalid", at, seconds=BAN_WINDOW)
        if len(invalid) >= BAN_AFTER:
            headers = {"Retry-After": str(math.ceil(BAN_WINDOW))}
            response = text_response(429, "error code: 1015", headers)
            reason = "The address is banned: too many invalid requests."
            return RequestResult(outcome="banned", response=response, reason=reason)
        result = super().handle(request, now=now)
        is_shared = result.response.headers.get("X-RateLimit-Scope") == "shared"
        if result.response.status in INVALID and not is_shared:
            invalid.append(at)
        return result

    def unknown_path(self, request: IncomingRequest) -> RefusedError:
        """Return the answer to a URL that is no webhook."""
        body = {"message": "404: Not Found", "code": 0}
        return RefusedError("not-found", json_response(404, body), "There is no such path.")

    def read(self, request: IncomingRequest, *, room: str, now: datetime) -> Posted:
        """Return the message, or Discord's refusal of it."""
        body = json_object(request)
        if body is None:
            answer = {"message": "The request body contains invalid JSON.", "code": 50109}
            raise RefusedError("not-json", json_response(400, answer), "The body is no JSON.")
        errors = dict(_form_errors(body))
        if errors:
            answer = {"message": "Invalid Form Body", "code": 50035, "errors": errors}
            reason = ", ".join(errors)
            raise RefusedError("invalid-form", json_response(400, answer), f"50035: {reason}")
        if not body.get("content") and not body.get("embeds"):
            answer = {"message": "Cannot send an empty message", "code": 50006}
            raise RefusedError("empty-message", json_response(400, answer), "50006: it is empty.")
        at = now.timestamp()
        bucket = self._bucket(request, at)
        if len(bucket) >= BUCKET_SIZE:
            response = _limited(bucket[0] + BUCKET_SECONDS - at)
            raise RefusedError("bucket-full", response, "The webhook's bucket is full.")
        bucket.append(at)
        return Posted(room=room, body=body)

    def refuse(self, outcome: Outcome, posted: Posted, *, now: datetime) -> ProviderResponse:
        """Return the answer of an outcome that isn't an acceptance."""
        if outcome.status in PAUSES:
            seconds = LONG_PAUSE if outcome.name == LONG else self.timings.rate_limit + 0.57
            scope = {SHARED: "shared", GLOBAL: "global"}.get(outcome.name, "user")
            return _limited(seconds, scope=scope)
        code, message = _ERRORS[outcome.name]
        return json_response(outcome.status, {"message": message, "code": code})

    def accept(
        self, outcome: Outcome, posted: Posted, request: IncomingRequest, *, now: datetime
    ) -> tuple[str | None, ProviderResponse]:
        """Return the message, or without ``wait`` nothing: not even whether it was posted."""
        at = now.timestamp()
        bucket = self._bucket(request, at)
        headers = _bucket_headers(
            BUCKET_SIZE - len(bucket), bucket[0] + BUCKET_SECONDS - at, now=now
        )
        message_id = str(10**18 + secrets.randbelow(10**17))
        if request.query.get("wait") != "true":
            return None, ProviderResponse(status=204, headers=headers, mode=outcome.mode)
        body = {} if outcome.name == NO_ID else {"id": message_id, "type": 0, "content": ""}
        response = json_response(200, body, headers)
        return message_id, ProviderResponse(
            status=200, body=response.body, headers=response.headers, mode=outcome.mode
        )

    def _bucket(self, request: IncomingRequest, at: float) -> deque[float]:
        """Return the times of the webhook's requests in its window."""
        return self._recent(request.path, at, seconds=BUCKET_SECONDS)

    def _recent(self, key: str, at: float, *, seconds: float) -> deque[float]:
        known = self.behaviours.recent.setdefault(f"{self.name} {key}", deque())
        while known and known[0] <= at - seconds:
            known.popleft()
        return known

    def card(self, body: Mapping[str, Any]) -> Card:
        """Return a message as the channel shows it: a mention only if it is allowed."""
        title, link = "", []
        content = body.get("content")
        paragraphs = [markdown(str(content))] if content else []
        for embed in body.get("embeds") or ():
            title = title or str(embed.get("title") or "")
            paragraphs += [markdown(str(embed["description"]))] if "description" in embed else []
            for item in embed.get("fields", ()):
                paragraphs.append(f"<b>{markdown(item['name'])}</b>\n{markdown(item['value'])}")
            link += [(title or "Link", embed["url"])] if embed.get("url") else []
        if (body.get("allowed_mentions") or {}).get("parse") == []:
            paragraphs = [text.replace(' class="mention"', "") for text in paragraphs]
        return build(title=title, paragraphs=paragraphs, buttons=link)


def _form_errors(body: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    content, embeds = body.get("content"), body.get("embeds")
    if content is not None and (not isinstance(content, str) or len(content) > MAX_CONTENT):
        yield "content", _at_most(MAX_CONTENT)
    mentions = body.get("allowed_mentions")
    if mentions is not None and not isinstance(mentions, dict):
        yield "allowed_mentions", ["Only dictionaries may be used."]
    if embeds is None:
        return
    is_list = isinstance(embeds, list) and all(isinstance(embed, dict) for embed in embeds)
    if not is_list or len(embeds) > MAX_EMBEDS:
        yield "embeds", _at_most(MAX_EMBEDS)
        return
    for index, embed in enumerate(embeds):
        for name, problem in _embed_errors(embed):
            yield f"embeds.{index}.{name}", problem
    texts = [text for embed in embeds for _, text, _ in _texts(embed)]
    if sum(map(len, texts)) > MAX_ALL_EMBEDS:
        yield "embeds", [f"Embed size exceeds maximum size of {MAX_ALL_EMBEDS}"]


def _embed_errors(embed: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    fields = embed.get("fields") or []
    if len(fields) > MAX_FIELDS:
        yield "fields", _at_most(MAX_FIELDS)
    if not all(item.get("name") and item.get("value") for item in fields):
        yield "fields", ["This field is required"]
    for name, text, most in _texts(embed):
        if len(text) > most:
            yield name, _at_most(most)
    url = embed.get("url")
    if url is not None and not str(url).startswith(("https://", "http://")):
        yield "url", ["Scheme must be one of ('http', 'https')."]


def _texts(embed: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield each text of an embed with its name and greatest length."""
    yield "title", embed.get("title") or "", MAX_TITLE
    yield "description", embed.get("description") or "", MAX_DESCRIPTION
    yield "footer.text", (embed.get("footer") or {}).get("text") or "", MAX_FOOTER
    for item in embed.get("fields") or ():
        yield "fields.name", item.get("name") or "", MAX_FIELD_NAME
        yield "fields.value", item.get("value") or "", MAX_FIELD_VALUE


def _at_most(most: int) -> list[str]:
    return [f"Must be {most} or fewer in length."]


def _limited(seconds: float, *, scope: str = "user") -> ProviderResponse:
    shown = round(max(seconds, 0.001), 3)
    body = {
        "message": "You are being rate limited.",
        "retry_after": shown,
        "global": scope == "global",
    }
    headers = {
        "Retry-After": str(math.ceil(shown)),
        "X-RateLimit-Scope": scope,
        **({"X-RateLimit-Global": "true"} if scope == "global" else {}),
    }
    if scope == "user":
        headers |= {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": f"{shown}"}
    return json_response(429, body, headers)


def _bucket_headers(left: int, reset: float, *, now: datetime) -> Mapping[str, str]:
    shown = max(reset, 0.001)
    return {
        "X-RateLimit-Limit": str(BUCKET_SIZE),
        "X-RateLimit-Remaining": str(max(left, 0)),
        "X-RateLimit-Reset": f"{now.timestamp() + shown:.3f}",
        "X-RateLimit-Reset-After": f"{shown:.3f}",
        "X-RateLimit-Bucket": "e1fbdd2c8c0f4a",
    }
