"""Workers and queues: what waits, since when, and who works on it. Nothing is changed here."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from domain.states import Channel
from domain.time import utc_now
from monitoring import workers
from notifications.models import Heartbeat
from notifications.queries import COUNT_CAP

from .home import SWEEP_OVERDUE, WORK_OVERDUE
from .notifications.summary import duration
from .widgets.labels import CHANNELS
from .widgets.lists import ReadOnlyAdmin

PAGE = "admin:notifications_heartbeat_changelist"


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    """One page with the queues, the workers and the signs of life."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may look at the page; a sign has none of its own."""
        return obj is None and super().has_view_permission(request)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page. ``?ask=1`` asks each worker for an answer, which takes half a second."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = utc_now()
        is_pinged = request.GET.get("ask") == "1"
        context = {
            **self.admin_site.each_context(request),
            "title": "Workers and queues",
            "opts": self.opts,
            "now": now,
            "channels": [CHANNELS[channel] for channel in Channel],
            "queues": [_queue(queue, now) for queue in workers.queue_status(now=now)],
            "service_depth": workers.service_depth(),
            "heartbeats": _heartbeats(now),
            "workers": [_worker(one, now) for one in workers.active_workers(now=now)],
            "active_within": duration(workers.ACTIVE_WITHIN.total_seconds()),
            "is_pinged": is_pinged,
            "answering": workers.ping_workers() if is_pinged else None,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/notifications/heartbeat/page.html", context)


def _queue(queue: workers.QueueStatus, now: datetime) -> dict[str, Any]:
    oldest = queue.oldest_due_at
    is_capped = queue.due >= COUNT_CAP
    return {
        "priority": queue.priority.value.capitalize(),
        "due": f"{queue.due:,}{' or more' if is_capped else ''}",
        "oldest": duration((now - oldest).total_seconds()) if oldest else "-",
        "is_late": oldest is not None and now - oldest > WORK_OVERDUE,
        "depths": list(queue.depths.values()),
    }


def _heartbeats(now: datetime) -> Sequence[dict[str, Any]]:
    found = workers.heartbeats()
    return [
        _heartbeat(
            "Last sweep", found.sweep, "finds what no hint reached, four times a minute", now
        ),
        _heartbeat(
            "Canary", found.worker, "a worker took the message that each sweep publishes", now
        ),
        _heartbeat("Figures", found.rollup, "counted every minute", now),
    ]


def _heartbeat(label: str, at: datetime | None, note: str, now: datetime) -> dict[str, Any]:
    return {
        "label": label,
        "value": f"{duration((now - at).total_seconds())} ago" if at else "never",
        "note": note,
        "is_late": at is None or now - at > SWEEP_OVERDUE,
    }


def _worker(one: workers.Worker, now: datetime) -> dict[str, Any]:
    ago = duration((now - one.last_at).total_seconds())
    return {"name": one.name, "attempts": one.attempts, "ago": ago}
