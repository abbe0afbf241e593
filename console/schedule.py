"""celery-beat's schedule: its own admin in our theme, and fit for MongoDB.

The app's own puts the keys of crontabs into JSON, which fails for ObjectIds, filters by dates with
expressions no index serves, and joins to show a schedule.
"""

from collections.abc import Sequence
from typing import Any

import redis
from celery import current_app
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django_celery_beat.admin import PeriodicTaskForm, TaskSelectWidget
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    PeriodicTasks,
    SolarSchedule,
)
from kombu.exceptions import OperationalError
from kombu.utils.json import loads
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from .widgets.lists import ConsoleAdmin

SCHEDULES = {
    "interval": IntervalSchedule,
    "crontab": CrontabSchedule,
    "solar": SolarSchedule,
    "clocked": ClockedSchedule,
}


for model in (PeriodicTask, *SCHEDULES.values()):
    admin.site.unregister(model)


class RegisteredTaskWidget(UnfoldAdminSelectWidget, TaskSelectWidget):
    """A choice of the tasks this project has, in our theme."""


class ThemedPeriodicTaskForm(PeriodicTaskForm):
    """The app's form in our theme."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["regtask"].widget = RegisteredTaskWidget()
        self.fields["task"].widget = UnfoldAdminTextInputWidget()


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(ConsoleAdmin):
    """What beat starts, and when."""

    form = ThemedPeriodicTaskForm
    list_display = ("name", "task", "schedule_text", "last_ran", "run_count", "enabled")
    list_after_template = "admin/console/schedule_after.html"
    ordering = ("name", "id")
    actions = ("enable_tasks", "disable_tasks", "run_tasks")
    readonly_fields = ("last_run_at", "total_run_count", "schedule_text")
    fieldsets = (
        (None, {"fields": ("name", "regtask", "task", "enabled", "description")}),
        (
            "Schedule: exactly one",
            {"fields": ("interval", "crontab", "clocked", "solar", "schedule_text")},
        ),
        ("Limits", {"fields": ("start_time", "one_off", "last_run_at", "total_run_count")}),
        ("Arguments", {"fields": ("args", "kwargs")}),
        (
            "Execution",
            {
                "fields": (
                    *("expires", "expire_seconds", "queue", "exchange"),
                    *("routing_key", "priority", "headers"),
                )
            },
        ),
    )

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Give each row its schedule, in one read for each kind."""
        for name, model in SCHEDULES.items():
            keys = {key for row in rows if (key := getattr(row, f"{name}_id"))}
            found = model.objects.in_bulk(keys) if keys else {}
            for row in rows:
                if schedule := found.get(getattr(row, f"{name}_id")):
                    setattr(row, name, schedule)

    @admin.display(description="Runs")
    def schedule_text(self, row: Any) -> str:
        """When it runs, in words."""
        if row.crontab_id:
            return str(row.crontab.human_readable)
        return next(
            (str(getattr(row, name)) for name in SCHEDULES if getattr(row, f"{name}_id")), "-"
        ).capitalize()

    @admin.display(description="Last run (UTC)")
    def last_ran(self, row: Any) -> SafeString | str:
        """When beat asked for it last; it tells the database of it every few minutes."""
        if row.last_run_at is None:
            return "-"
        return format_html("<time>{}</time>", f"{row.last_run_at:%Y-%m-%d %H:%M}")

    @admin.display(description="Runs so far")
    def run_count(self, row: Any) -> int:
        """How often it has run."""
        return int(row.total_run_count)

    @admin.action(description="Enable", permissions=["change"])
    def enable_tasks(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Switch the ticked tasks on."""
        count = queryset.update(enabled=True)
        PeriodicTasks.update_changed()
        messages.success(request, f"Enabled: {count}.")

    @admin.action(description="Disable", permissions=["change"])
    def disable_tasks(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Switch the ticked tasks off."""
        count = queryset.update(enabled=False, last_run_at=None)
        PeriodicTasks.update_changed()
        messages.success(request, f"Disabled: {count}.")

    @admin.action(description="Run now", permissions=["change"])
    def run_tasks(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Ask the workers to run the ticked tasks once, now."""
        current_app.loader.import_default_modules()
        for task in queryset:
            if task.task not in current_app.tasks:
                messages.error(request, f"{task.name}: there is no task {task.task}.")
                continue
            try:
                current_app.send_task(
                    task.task,
                    args=loads(task.args),
                    kwargs=loads(task.kwargs),
                    queue=task.queue or None,
                    retry=False,
                    ignore_result=True,
                )
            except (OperationalError, redis.RedisError, OSError) as error:
                reason = type(error).__name__
                messages.error(request, f"{task.name}: the broker does not answer ({reason}).")
            else:
                messages.success(request, f"{task.name}: asked a worker to run it.")


class PeriodicTaskInline(TabularInline):
    """The tasks that use a schedule."""

    model = PeriodicTask
    fields = ("name", "task", "enabled")
    readonly_fields = fields
    ordering = ("name",)
    can_delete = False
    extra = 0
    show_change_link = True
    verbose_name_plural = "Tasks that use this schedule"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: a task is added on its own page."""
        return False


class ScheduleAdmin(ConsoleAdmin):
    """A schedule, and the tasks that use it."""

    inlines = (PeriodicTaskInline,)
    ordering = ("id",)


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(ScheduleAdmin):
    """Every so often."""

    list_display = ("__str__", "every", "period")


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(ScheduleAdmin):
    """As cron has it."""

    list_display = ("human_readable", "__str__")
    readonly_fields = ("human_readable",)
    fields = (
        *("human_readable", "minute", "hour", "day_of_month"),
        *("month_of_year", "day_of_week", "timezone"),
    )


@admin.register(SolarSchedule)
class SolarScheduleAdmin(ScheduleAdmin):
    """By the sun."""

    list_display = ("__str__", "event", "latitude", "longitude")


@admin.register(ClockedSchedule)
class ClockedScheduleAdmin(ScheduleAdmin):
    """Once, at an instant."""

    list_display = ("clocked_time",)
