"""Hints for unknown fields: the name that a client means, by its spelling or by its sense."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from notifications.validation import MAX_KEY_LENGTH, suggest

MAX_HINTS = 20
"""Fuzzy comparisons of one request, also of a bulk of items. Each takes 0.1 ms."""
_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_MEANINGS: Mapping[str, str] = {
    # The text, in the words of other services.
    **dict.fromkeys(("title", "headline", "heading", "subject_line"), "content.subject"),
    **dict.fromkeys(
        ("message", "msg", "text", "body", "html", "plain_text", "description", "alert"),
        "content.body",
    ),
    **dict.fromkeys(("image", "icon", "picture", "image_link"), "content.image_url"),
    **dict.fromkeys(("link", "url", "action_url", "click_action", "deeplink"), "content.deep_link"),
    **dict.fromkeys(
        ("template", "template_name", "templateid", "template_slug"), "content.template_id"
    ),
    **dict.fromkeys(
        (
            "metadata_json",
            "metadata",
            "variables",
            "params",
            "parameters",
            "context",
            "vars",
            "personalisation",
            "personalization",
            "template_data",
            "merge_vars",
            "substitutions",
            "dynamic_template_data",
            "properties",
        ),
        "data",
    ),
    # Whom, how, and when.
    **dict.fromkeys(
        ("to", "subscriber", "customer_id", "account_id", "recipient_id", "owner_id"), "user_id"
    ),
    **dict.fromkeys(("email_address", "mail", "e_mail"), "recipient.email"),
    **dict.fromkeys(("phone_number", "mobile", "msisdn", "whatsapp", "tel"), "recipient.phone"),
    **dict.fromkeys(("device_id", "devices", "device_token"), "recipient.device_ids"),
    **dict.fromkeys(("valid_channels", "via", "transport", "delivery_channels"), "channels"),
    **dict.fromkeys(("notification_type", "kind", "event_name", "workflow", "event_type"), "type"),
    **dict.fromkeys(
        ("scheduled_to_send", "send_at", "deliver_at", "schedule", "send_after", "run_at"),
        "scheduled_at",
    ),
    **dict.fromkeys(("time_to_live", "expire", "expiry", "expires_in"), "ttl"),
    **dict.fromkeys(("retries", "retry_count", "max_attempts", "retry"), "max_retries"),
    **dict.fromkeys(
        ("contest_id", "order_id", "object_id", "resource_id", "reference_id", "entity"),
        "entity_id",
    ),
    **dict.fromkeys(("correlation_id", "client_reference", "custom_id", "ref"), "external_id"),
    **dict.fromkeys(("prio", "urgency", "importance"), "priority"),
    # Devices and recipients.
    **dict.fromkeys(
        ("token", "registration_id", "push_token", "fcm_token", "registration_token"),
        "device_token",
    ),
    **dict.fromkeys(("os", "device_type", "device_platform"), "platform"),
    **dict.fromkeys(("lang", "locale", "language_code"), "language"),
    **dict.fromkeys(("language", "lang_code"), "locale"),
    **dict.fromkeys(("tz", "time_zone", "zone", "utc_offset"), "timezone"),
    **dict.fromkeys(("full_name", "first_name", "display_name", "username"), "name"),
    **dict.fromkeys(("enabled", "disabled", "unsubscribed", "opt_out", "opted_out"), "muted"),
}
"""Where other services' names belong. The first part of a dotted name holds the last one."""
_MORE_MEANINGS: Mapping[str, Collection[str]] = {
    "locale": ("language", "recipient.locale"),
    "language": ("locale", "recipient.locale"),
    "lang": ("language", "locale", "recipient.locale"),
    "timezone": ("recipient.timezone",),
    "tz": ("timezone", "recipient.timezone"),
    "name": ("recipient.name",),
    "title": ("subject",),
    "text": ("body",),
    "message": ("body",),
}
_OF_THE_SERVICE = frozenset(
    {
        "id",
        "_id",
        "created_at",
        "updated_at",
        "status",
        "delivery",
        "delivery_status",
        "sent_at",
        "delivered_at",
        "failed_at",
        "read_at",
        "last_attempt",
        "attempt_count",
        "send_attempts",
        "is_sent",
        "is_read",
        "is_active",
        "is_delivered",
        "error",
        "error_message",
        "error_history",
        "failure_reason",
        "provider_message_id",
        "next_retry_at",
        "last_retry_at",
        "can_retry",
        "last_seen",
    }
)
"""Fields of answers, in the words of this service and of others."""
_HEADERS = {
    "idempotency_key": "Idempotency-Key",
    "request_id": "X-Request-Id",
    "api_key": "Authorization",
}


@dataclass(slots=True)
class HintBudget:
    """How many more unknown fields of a request are compared with the known ones."""

    left: int = MAX_HINTS

    def take(self) -> bool:
        """Use one of the budget, and return whether there was one."""
        self.left -= 1
        return self.left >= 0


def field_hint(
    name: str, *, known: Collection[str], inner: Iterable[str], outer: Collection[str]
) -> str:
    """Return a hint for an unknown field, which begins with a space, or an empty string.

    ``known``: names at the same level; ``inner``: dotted names below these; ``outer``: names at the
    top of the body, if the field is nested.
    """
    inside = tuple(inner)
    plain = _CAMEL_CASE_BOUNDARY.sub("_", name[:MAX_KEY_LENGTH]).lower().replace("-", "_")
    is_here = plain in known or any(name.rpartition(".")[2] == plain for name in inside)
    hint = "" if is_here else _by_meaning(plain, known=(*known, *inside), outer=outer)
    return hint or suggest(name, *known, inner=inside)


def _by_meaning(plain: str, *, known: Collection[str], outer: Collection[str]) -> str:
    candidates = (*_MORE_MEANINGS.get(plain, ()), _MEANINGS.get(plain, ""))
    for meant in filter(None, candidates):
        here = next((name for name in (meant, meant.rpartition(".")[2]) if name in known), None)
        if here is not None:
            return f" Did you mean `{here}`?"
        if meant in outer:
            return f" Did you mean `{meant}`, beside the object that holds it?"
    others = {
        f" `{plain}` belongs beside the object that holds it.": plain in outer,
        f" Send it in the header `{_HEADERS.get(plain)}`.": plain in _HEADERS,
        " The service sets it.": plain in _OF_THE_SERVICE,
    }
    return next((hint for hint, applies in others.items() if applies), "")
