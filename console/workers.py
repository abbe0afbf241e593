"""The page of workers and queues: the backlog by priority, heartbeats, and active workers."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from domain.states import Channel
from domain.time import utc_now
from monitoring import workers
from notifications.models import Heartbeat
from notifications.queries import COUNT_CAP

from .home import SWEEP_OVERDUE, WORK_OVERDUE
from .texts.labels import CHANNELS
from .widgets.actions import render_page
from .widgets.formats import duration, runs_every
from .widgets.lists import ListOnlyAdmin


@admin.register(Heartbeat)
class HeartbeatAdmin(ListOnlyAdmin):
    """Shows the page in place of a list of heartbeats."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page. ``?ask=1`` pings the workers, which takes half a second."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = utc_now()
        is_pinged = request.GET.get("ask") == "1"
        beats = workers.heartbeats()
        return render_page(
            self,
            request,
            "console/workers.html",
            title="Workers and queues",
            now=now,
            channels=[CHANNELS[channel] for channel in Channel],
            queues=[_queue(queue, now) for queue in workers.queue_status(now=now)],
            service_depth=workers.service_depth(),
            heartbeats=[
                _heartbeat(
                    "Last sweep",
                    beats.sweep,
                    f"picks up missed work, {_runs(workers.SWEEP_TASK)}",
                    now,
                ),
                _heartbeat(
                    "Worker heartbeat", beats.worker, "a worker took a sweep's message", now
                ),
                _heartbeat("Metrics roll-up", beats.rollup, _runs(workers.ROLLUP_TASK), now),
            ],
            workers=[
                {
                    "name": worker.name,
                    "attempts": worker.attempts,
                    "ago": duration((now - worker.last_at).total_seconds()),
                }
                for worker in workers.active_workers(now=now)
            ],
            active_within=duration(workers.ACTIVE_WITHIN.total_seconds()),
            is_pinged=is_pinged,
            answering=workers.ping_workers() if is_pinged else None,
        )


def _queue(queue: workers.QueueStatus, now: datetime) -> dict[str, Any]:
    oldest = queue.oldest_due_at
    return {
        "priority": queue.priority.value.capitalize(),
        "due": f"{queue.due:,}{'+' if queue.due >= COUNT_CAP else ''}",
        "oldest": duration((now - oldest).total_seconds()) if oldest else "-",
        "is_late": oldest is not None and now - oldest > WORK_OVERDUE,
        "depths": list(queue.depths.values()),
    }


def _runs(task: str) -> str:
    return runs_every(workers.scheduled_interval(task))


def _heartbeat(label: str, at: datetime | None, note: str, now: datetime) -> dict[str, Any]:
    return {
        "label": label,
        "value": f"{duration((now - at).total_seconds())} ago" if at else "never",
        "note": note,
        "is_late": at is None or now - at > SWEEP_OVERDUE,
    }
