"""What may be kept of the body of a request: its form, and values of the service's own. Pure."""

import re
from typing import Any

SHOWN = frozenset(
    {
        *("type", "types", "slug", "category", "categories", "channel", "channels", "priority"),
        *("plan", "until", "steps", "after", "skip_if_late"),
        *("scheduled_at", "scheduled_local", "at", "event_at", "expires_at", "ttl", "ttl_seconds"),
        *("notifications", "audience", "topic", "all", "spread", "local_hour", "room"),
        *("digest", "window", "every", "minutes", "days", "overflow", "max", "period_seconds"),
        *("min_gap_seconds", "notify_before", "ignore_limits", "max_retries", "on_unknown"),
        *("platform", "events", "event", "brand", "source", "reason", "is_active", "enabled"),
        *("dry_run", "publish", "size", "duplicates", "skip_wrong_rows", "marketing_only"),
    }
)
"""Fields whose values name nobody. Of all others, also those to come, only the kind is kept."""
MAX_ITEMS = 50
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_INDEX = re.compile(r"\d{1,4}", re.ASCII)
_PLAIN = re.compile(r"(?!\+)(?!.*\d{7})[A-Za-z0-9_.:+-]{1,64}", re.ASCII)
"""A word or a time, and neither an address nor a number of a person."""


def without_values(body: Any) -> Any:
    """Return a JSON value with the kind of each value in its place, but for those of SHOWN."""
    return _kept(body, is_shown=True)


def pointer_without_values(pointer: str) -> str:
    """Return a JSON Pointer with ``…`` in the place of what is neither a name nor a number."""
    steps = pointer.split("/")
    return "/".join(
        step if not step or _NAME.fullmatch(step) or _INDEX.fullmatch(step) else "…"
        for step in steps
    )


def _kept(value: Any, *, is_shown: bool) -> Any:
    match value:
        case dict():
            kept = {
                name if _NAME.fullmatch(name) else "…": _kept(
                    item, is_shown=is_shown and name in SHOWN
                )
                for name, item in list(value.items())[:MAX_ITEMS]
            }
            return kept if len(value) <= MAX_ITEMS else {**kept, "…": _more(value)}
        case list():
            items = [_kept(item, is_shown=is_shown) for item in value[:MAX_ITEMS]]
            return items if len(value) <= MAX_ITEMS else [*items, _more(value)]
        case str():
            is_plain = is_shown and _PLAIN.fullmatch(value)
            return value if is_plain else f"… ({len(value)} characters)"
        case None:
            return None
        case bool():
            return value if is_shown else "… (true or false)"
        case _:
            return value if is_shown else "… (number)"


def _more(value: dict[str, Any] | list[Any]) -> str:
    return f"… ({len(value) - MAX_ITEMS} more)"
