"""How urgent a request is: by its own word, or by its type."""

from domain.states import Priority

from ..types import NotificationKind
from .problems import Collector
from .requests import NotificationRequest

ALIASES = {"medium": Priority.NORMAL}


def priority_of(
    request: NotificationRequest, kind: NotificationKind | None, problems: Collector
) -> Priority:
    """Return a request's priority, or its type's if it names none; notes one there is not."""
    if request.priority is None:
        return kind.priority if kind else Priority.NORMAL
    alias = ALIASES.get(request.priority)
    if alias is not None:
        return alias
    try:
        return Priority(request.priority)
    except ValueError:
        problems.add("/priority", "unknown_priority", f"Expected one of {', '.join(Priority)}.")
        return Priority.NORMAL
