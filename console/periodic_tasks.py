"""Schedule of Celery beat: the admin of django_celery_beat, adapted to the theme and MongoDB.

The package's own admin serializes keys of crontabs as JSON, which fails for ObjectIds. It also
joins tables, and compares dates by expressions that no index serves. Every task of the service runs
at an interval, so that the package's other kinds of schedule have no pages.
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

from notifyproject.platform import broker

from .widgets.columns import active_column, text_column, time_column, two_lines
from .widgets.lists import ConsoleAdmin, never, section

for model in (PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule):
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
        if "interval" in self.fields:  # Not for those who may only look.
            self.fields["interval"].required = True

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
    readonly_fields = ("last_run_at", "total_run_count")
    last_ran = time_column("Last run", "last_run_at")
    run_count = text_column("Run count", "total_run_count")
    fieldsets = (
        section(None, "name", "regtask", "task", "enabled", "description"),
        section("Schedule", "interval", "one_off", "start_time", "last_run_at", "total_run_count"),
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
        """Add the intervals, in one read."""
        found = IntervalSchedule.objects.in_bulk({row.interval_id for row in rows})
        for row in rows:
            row.interval = found.get(row.interval_id)

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
        return str(row.interval or "-").capitalize()

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
    """The tasks that use an interval. New tasks are added on the page of tasks."""

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
    verbose_name_plural = "Tasks with this interval"
    has_add_permission = never


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(SingleDeletionAdmin):
    """The intervals and their tasks."""

    inlines = (PeriodicTaskInline,)
    ordering = ("id",)
    list_display = ("schedule", "tasks")
    empty_title = "No intervals"
    empty_text = "Periodic tasks run at intervals. Add one, then select it on a task's page."
    tasks = text_column("Periodic tasks", "task_names", empty="Not used")

    def get_inlines(self, request: HttpRequest, obj: Any) -> Sequence[type[TabularInline]]:
        """Return the tasks of a stored interval. A new one has none."""
        return self.inlines if obj is not None else ()

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the names of the tasks, in one read for all rows."""
        names: dict[Any, list[str]] = {}
        used = PeriodicTask.objects.filter(interval_id__in=[row.pk for row in rows])
        for name, interval in used.order_by("name").values_list("name", "interval_id"):
            names.setdefault(interval, []).append(name)
        for row in rows:
            row.task_names = ", ".join(names.get(row.pk, ()))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether an interval can be deleted: not with its tasks, which would go too."""
        is_allowed = bool(super().has_delete_permission(request, obj))
        return is_allowed and (obj is None or not obj.periodictask_set.exists())

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        """Return a field of the form, with the console's words."""
        found = super().formfield_for_dbfield(db_field, request, **options)
        if found is not None and db_field.name in INTERVAL_TEXTS:
            found.label, found.help_text = INTERVAL_TEXTS[db_field.name]
        return found

    @admin.display(description="Interval")
    def schedule(self, row: Any) -> str:
        """Return the interval as text."""
        return capfirst(str(row))

    def object_title(self, obj: Any) -> str:
        """Return the interval as text."""
        return self.schedule(obj)


INTERVAL_TEXTS = {"every": ("Every", "A number of the units below."), "period": ("Unit", "")}
"""Labels and help texts of an interval, in the console's words."""
