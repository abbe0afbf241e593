"""The page of workers and queues: the backlog by priority, heartbeats, and active workers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from domain.channels import Channel
from domain.states import Priority
from domain.time import utc_now
from monitoring import workers
from notifications.models import Heartbeat
from notifications.queries import COUNT_CAP

from .problems import SWEEP_OVERDUE, WORK_OVERDUE
from .texts.labels import CHANNELS
from .widgets.actions import render_page
from .widgets.columns import chip
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
                _heartbeat("Last task run by a worker", beats.worker, "each sweep sends one", now),
                _heartbeat("Metrics roll-up", beats.rollup, _runs(workers.ROLLUP_TASK), now),
            ],
            workers=[_worker(worker, now) for worker in workers.all_workers(now=now)],
            active_within=duration(workers.ACTIVE_WITHIN.total_seconds()),
            is_pinged=is_pinged,
            answering=workers.ping_workers() if is_pinged else None,
        )


def _worker(worker: workers.Worker, now: datetime) -> dict[str, Any]:
    last, seen, started = worker.last_at, worker.seen_at, worker.started_at
    return {
        "name": worker.name,
        "chip": chip(*(("Active", "info") if last else ("Idle", "success"))),
        "attempts": worker.attempts,
        "ago": f"{duration((now - last).total_seconds())} ago" if last else "-",
        "seen": f"{duration((now - seen).total_seconds())} ago" if seen else "-",
        "age": duration((now - started).total_seconds()) if started else "-",
        "queues": _queues_text(worker.queues),
        "all_queues": ", ".join(worker.queues),
        "version": worker.version or "-",
    }


def _queues_text(queues: Sequence[str]) -> str:
    """Return the queues by their channel: "email, push (critical, high)"."""
    by_channel: dict[str, list[str]] = {}
    for queue in queues:
        channel, _, priority = queue.partition(".")
        by_channel.setdefault(channel, []).append(priority)
    return ", ".join(
        channel
        if (len(own) in (1, len(Priority)) and "" in own) or len(own) == len(Priority)
        else f"{channel} ({', '.join(own)})"
        for channel, own in by_channel.items()
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
