"""Schedule of Celery beat: the admin of django_celery_beat, adapted to the theme and MongoDB.

The package's own admin serializes keys of crontabs as JSON, which fails for ObjectIds. It also
joins tables, and compares dates by expressions that no index serves.
"""

from collections.abc import Sequence
from typing import Any

from celery import current_app
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django_celery_beat.admin import PeriodicTaskForm, TaskSelectWidget
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    PeriodicTasks,
    SolarSchedule,
)
from kombu.utils.json import loads
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from domain.time import parse_zone
from notifyproject.platform import broker

from .widgets.columns import active_column, text_column, time_column, two_lines
from .widgets.lists import ConsoleAdmin, never, section

SCHEDULES = {
    "interval": IntervalSchedule,
    "crontab": CrontabSchedule,
    "solar": SolarSchedule,
    "clocked": ClockedSchedule,
}
for model in (PeriodicTask, *SCHEDULES.values()):
    admin.site.unregister(model)


OWN_TASKS = "notifications."
"""Prefix of the service's own tasks."""
TASK_TEXTS = {
    "name": ("Name", "Unique."),
    "regtask": ("Task", "One of this project's."),
    "task": ("Other task", "The name of a task that the list doesn't have."),
    "enabled": ("Active", ""),
    "description": ("Description", "Why it runs."),
    "interval": ("Interval", ""),
    "crontab": ("Crontab", ""),
    "clocked": ("Once at", ""),
    "solar": ("Solar event", ""),
    "start_time": ("Starts (UTC)", "Not before then."),
    "one_off": ("Once only", "Turned off after the first run."),
    "args": ("Arguments", 'A JSON list, such as ["a", 1].'),
    "kwargs": ("Named arguments", 'A JSON object, such as {"limit": 10}.'),
    "expires": ("Expires at (UTC)", "Not run after then."),
    "expire_seconds": ("Expires after (seconds)", "Of the time when it was due."),
    "queue": ("Queue", "Empty: the task's own."),
    "exchange": ("Exchange", "For RabbitMQ. Empty: that of the queue."),
    "routing_key": ("Routing key", "For RabbitMQ. Empty: that of the queue."),
    "priority": ("Priority", "0 to 255; higher runs first."),
    "headers": ("Headers", "A JSON object."),
}
"""Labels and help texts of a periodic task, in the console's words."""


class RegisteredTaskWidget(UnfoldAdminSelectWidget, TaskSelectWidget):
    """The package's select box for a task, in the theme."""


class ThemedPeriodicTaskForm(PeriodicTaskForm):
    """The package's form in the theme."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name, (label, help_text) in TASK_TEXTS.items():
            if name in self.fields:
                self.fields[name].label, self.fields[name].help_text = label, help_text
        self.fields["regtask"].widget = RegisteredTaskWidget()
        self.fields["task"].widget = UnfoldAdminTextInputWidget()

    def clean(self) -> dict[str, Any] | None:
        """Check the fields together, unless the task itself is refused.

        The package reads the task though a refused field has no value.
        """
        return ModelForm.clean(self) if "task" in self.errors else super().clean()

    def _clean_json(self, field: str) -> str:
        try:
            return super()._clean_json(field)
        except RecursionError:
            raise ValidationError("Unable to parse JSON: it is nested too deeply.") from None


class SingleDeletionAdmin(ConsoleAdmin):
    """An admin whose objects are deleted one at a time, because some can't be deleted."""

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the actions, without the deletion of many, which doesn't ask about each."""
        found: dict[str, Any] = super().get_actions(request)
        found.pop("delete_selected", None)
        return found


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(SingleDeletionAdmin):
    """The periodic tasks."""

    form = ThemedPeriodicTaskForm
    list_display = (
        "name_and_reason",
        "task_name",
        "schedule_text",
        "last_ran",
        "run_count",
        "active",
    )
    search_fields = ("name", "task")
    search_help_text = "Part of a name or of a task"
    task_name = text_column("Task", "task")
    active = active_column("enabled")
    ordering = ("name", "id")
    actions = ("enable_tasks", "disable_tasks", "run_tasks")
    readonly_fields = ("last_run_at", "total_run_count", "schedule_text")
    last_ran = time_column("Last run", "last_run_at")
    run_count = text_column("Run count", "total_run_count")
    fieldsets = (
        section(None, "name", "regtask", "task", "enabled", "description"),
        section(
            "Schedule: exactly one", "interval", "crontab", "clocked", "solar", "schedule_text"
        ),
        section("Limits", "start_time", "one_off", "last_run_at", "total_run_count"),
        section("Arguments", "args", "kwargs"),
        section(
            "Execution",
            "expires",
            "expire_seconds",
            "queue",
            "exchange",
            "routing_key",
            "priority",
            "headers",
        ),
    )

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the schedules, in one read for each kind."""
        for name, model in SCHEDULES.items():
            keys = {key for row in rows if (key := getattr(row, f"{name}_id"))}
            found = model.objects.in_bulk(keys) if keys else {}
            for row in rows:
                if schedule := found.get(getattr(row, f"{name}_id")):
                    setattr(row, name, schedule)

    def changed_columns(self, form: Any) -> list[str]:
        """Return the stored fields that a form changes, and those that follow from them."""
        changed = super().changed_columns(form)
        # The registered task is stored as the task; a disabled task forgets its last run.
        derived = {"regtask": "task", "enabled": "last_run_at"}
        follows = [derived[name] for name in form.changed_data if name in derived]
        return list(dict.fromkeys([*changed, *follows]))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether a task can be deleted."""
        # Not the last one that runs a task of the service: the next start would add it again.
        is_allowed = bool(super().has_delete_permission(request, obj))
        if obj is None or not obj.task.startswith(OWN_TASKS):
            return is_allowed
        return is_allowed and PeriodicTask.objects.filter(task=obj.task).exclude(pk=obj.pk).exists()

    @admin.display(description="Name")
    def name_and_reason(self, row: Any) -> SafeString:
        """Return the name, and why it runs."""
        return two_lines(row.name, row.description)

    @admin.display(description="Schedule")
    def schedule_text(self, row: Any) -> str:
        """Return the schedule as text."""
        if row.crontab_id:
            return str(row.crontab.human_readable)
        return next(
            (str(getattr(row, name)) for name in SCHEDULES if getattr(row, f"{name}_id")), "-"
        ).capitalize()

    @admin.action(description="Enable", permissions=["change"])
    def enable_tasks(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Enable the selected tasks."""
        count = queryset.update(enabled=True)
        PeriodicTasks.update_changed()
        messages.success(request, f"Enabled: {count}.")

    @admin.action(description="Disable", permissions=["change"])
    def disable_tasks(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Disable the selected tasks."""
        count = queryset.update(enabled=False, last_run_at=None)
        PeriodicTasks.update_changed()
        messages.success(request, f"Disabled: {count}.")

    @admin.action(description="Run now", permissions=["change"])
    def run_tasks(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Publish the selected tasks once, now."""
        current_app.loader.import_default_modules()
        for task in queryset:
            if task.task not in current_app.tasks:
                messages.error(request, f"{task.name}: unknown task {task.task}.")
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
            except broker.ERRORS as error:
                reason = type(error).__name__
                messages.error(request, f"{task.name}: broker unavailable ({reason}).")
            else:
                messages.success(request, f"{task.name}: queued.")


class PeriodicTaskInline(TabularInline):
    """The tasks that use a schedule. New tasks are added on the page of tasks."""

    model = PeriodicTask
    fields = ("name_text", "task_name", "active")
    readonly_fields = fields
    name_text = text_column("Name", "name")
    task_name = text_column("Task", "task")
    active = active_column("enabled")
    ordering = ("name",)
    can_delete = False
    extra = 0
    show_change_link = True
    verbose_name_plural = "Tasks with this schedule"
    has_add_permission = never


SCHEDULE_TEXTS = {
    "every": ("Every", "A number of the units below."),
    "period": ("Unit", ""),
    "minute": ("Minutes", "0 to 59: * for all, 0,30 for some, */15 for every 15th."),
    "hour": ("Hours", "0 to 23: * for all, 8,20 for some, 8-18 for a range."),
    "day_of_month": ("Days of the month", "1 to 31: * for all, 1,15 for some."),
    "month_of_year": ("Months", "1 to 12: * for all, 1,7 for some."),
    "day_of_week": ("Days of the week", "0 to 6, from Sunday: * for all, 1-5 for workdays."),
    "timezone": ("Time zone", "The clock by which it runs."),
    "clocked_time": ("Once at (UTC)", ""),
    "event": ("Solar event", ""),
    "latitude": ("Latitude", "-90 to 90, north is positive."),
    "longitude": ("Longitude", "-180 to 180, east is positive."),
}
"""Labels and help texts of schedules, in the console's words."""


class ScheduleAdmin(SingleDeletionAdmin):
    """A schedule and its tasks."""

    inlines = (PeriodicTaskInline,)
    ordering = ("id",)
    list_display: Sequence[str] = ("schedule", "tasks")
    empty_text = "Periodic tasks run by schedules. Add one, then select it on a task's page."
    tasks = text_column("Periodic tasks", "task_names", empty="Not used")

    @property
    def task_field(self) -> str:
        """The field of a task that refers to this kind of schedule."""
        return next(name for name, model in SCHEDULES.items() if model is self.model)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Sequence[type[TabularInline]]:
        """Return the tasks of a stored schedule. A new one has none."""
        return self.inlines if obj is not None else ()

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the names of the tasks, in one read for all rows."""
        names: dict[Any, list[str]] = {}
        key = f"{self.task_field}_id"
        used = PeriodicTask.objects.filter(**{f"{key}__in": [row.pk for row in rows]})
        for name, schedule in used.order_by("name").values_list("name", key):
            names.setdefault(schedule, []).append(name)
        for row in rows:
            row.task_names = ", ".join(names.get(row.pk, ()))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether a schedule can be deleted: not with its tasks, which would go too."""
        is_allowed = bool(super().has_delete_permission(request, obj))
        return is_allowed and (obj is None or not obj.periodictask_set.exists())

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        """Return a field of the form, with the console's words."""
        found = super().formfield_for_dbfield(db_field, request, **options)
        if found is not None and db_field.name in SCHEDULE_TEXTS:
            found.label, found.help_text = SCHEDULE_TEXTS[db_field.name]
        return found

    @admin.display(description="Schedule")
    def schedule(self, row: Any) -> str:
        """Return the schedule as text."""
        return capfirst(str(getattr(row, "human_readable", None) or row))

    def object_title(self, obj: Any) -> str:
        """Return the schedule as text."""
        return self.schedule(obj)


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(ScheduleAdmin):
    """Intervals."""

    empty_title = "No intervals"


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(ScheduleAdmin):
    """Crontabs."""

    list_display = ("schedule", "expression", "zone", "tasks")
    fields = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone")
    empty_title = "No crontabs"
    zone = text_column("Time zone", "timezone")

    @admin.display(description="Expression")
    def expression(self, row: Any) -> str:
        """Return the five fields of cron."""
        parts = (row.minute, row.hour, row.day_of_month, row.month_of_year, row.day_of_week)
        return " ".join(map(str, parts))

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        """Return a field of the form. The package's time zone fails for a long name."""
        found = super().formfield_for_dbfield(db_field, request, **options)
        if db_field.name == "timezone":
            found.coerce = lambda zone: parse_zone(str(zone))
        return found


@admin.register(SolarSchedule)
class SolarScheduleAdmin(ScheduleAdmin):
    """Solar schedules."""

    empty_title = "No solar schedules"


@admin.register(ClockedSchedule)
class ClockedScheduleAdmin(ScheduleAdmin):
    """One-time schedules."""

    list_display = ("at", "tasks")
    empty_title = "No one-time schedules"
    at = time_column("Once at", "clocked_time")
