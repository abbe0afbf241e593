"""beat's schedule in the console: periodic tasks and their intervals, on MongoDB."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import current_app
from django.test import Client
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from delivery import sweeper
from tasks import schedule
from tests.support.tables import each_case

LIST = "/admin/django_celery_beat/"
TASKS = f"{LIST}periodictask/"


@pytest.fixture(autouse=True)
def hourly(db: None) -> Iterator[IntervalSchedule]:
    """Add an interval to the shipped schedule; restore the schedule after the test."""
    yield IntervalSchedule.objects.create(every=3, period="hours")
    for model in (PeriodicTask, IntervalSchedule):
        model.objects.all().delete()
    schedule.add_missing_tasks()


def task_form(**fields: Any) -> dict[str, Any]:
    default = {"name": "Tidy up", "regtask": "", "task": "notifications.sweep", "enabled": "on"}
    default |= {"args": "[]", "kwargs": "{}", "headers": "{}", "priority": ""}
    return default | fields


def errors(response: Any) -> str:
    return str(response.context["errors"]) if response.context else ""


def test_task_is_created_changed_and_deleted(console: Client, hourly: IntervalSchedule) -> None:
    assert console.get(f"{TASKS}add/").status_code == 200
    response = console.post(f"{TASKS}add/", task_form(interval=str(hourly.pk)))
    assert response.status_code == 302, errors(response)
    task = PeriodicTask.objects.get(name="Tidy up")
    assert task.interval == hourly
    page = console.get(f"{TASKS}{task.pk}/change/").content.decode()
    assert "every 3 hours" in page
    assert "notifications.deliver" in page
    changed = task_form(interval=str(hourly.pk), description="Every three hours.", enabled="")
    response = console.post(f"{TASKS}{task.pk}/change/", changed)
    assert response.status_code == 302, errors(response)
    task.refresh_from_db()
    assert (task.description, task.enabled) == ("Every three hours.", False)
    assert "Every 3 hours" in console.get(TASKS).content.decode()
    assert console.get(f"{TASKS}{task.pk}/delete/").status_code == 200
    assert console.post(f"{TASKS}{task.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not PeriodicTask.objects.filter(pk=task.pk).exists()
    assert IntervalSchedule.objects.filter(pk=hourly.pk).exists()


def test_registered_task_is_selected(console: Client, hourly: IntervalSchedule) -> None:
    chosen = task_form(regtask="notifications.deliver", task="", interval=str(hourly.pk))
    assert console.post(f"{TASKS}add/", chosen).status_code == 302
    assert PeriodicTask.objects.get(name="Tidy up").task == "notifications.deliver"


@each_case(
    "fields, problem",
    [
        ({}, "This field is required"),
        ({"interval": "hourly", "args": "{"}, "Unable to parse JSON"),
        ({"interval": "hourly", "args": "[" * 70_000}, "Unable to parse JSON"),
        ({"interval": "hourly", "kwargs": '{"a":' * 70_000}, "Unable to parse JSON"),
        ({"interval": "hourly", "task": ""}, "Need name of task"),
        ({"interval": "hourly", "task": "x" * 70_000}, "at most 200 characters"),
        ({"interval": "hourly", "task": "a\0b"}, "Null characters"),
        ({"interval": "hourly", "name": "Sweep"}, "already exists"),
    ],
)
def test_invalid_task_is_refused(
    console: Client, hourly: IntervalSchedule, fields: dict[str, str], problem: str
) -> None:
    sent = fields | ({"interval": str(hourly.pk)} if "interval" in fields else {})
    response = console.post(f"{TASKS}add/", task_form(**sent))
    assert response.status_code == 200
    assert problem in response.content.decode()
    assert PeriodicTask.objects.count() == len(schedule.PERIODIC_TASKS)


NO_TASKS = {"periodictask_set-TOTAL_FORMS": "0", "periodictask_set-INITIAL_FORMS": "0"}


def test_interval_is_created_changed_and_deleted(console: Client) -> None:
    before = set(IntervalSchedule.objects.values_list("pk", flat=True))
    url = f"{LIST}intervalschedule/"
    assert console.get(f"{url}add/").status_code == 200
    response = console.post(f"{url}add/", {"every": "5", "period": "minutes"} | NO_TASKS)
    assert response.status_code == 302, errors(response)
    (pk,) = set(IntervalSchedule.objects.values_list("pk", flat=True)) - before
    assert console.get(f"{url}{pk}/change/").status_code == 200
    response = console.post(f"{url}{pk}/change/", {"every": "7", "period": "minutes"} | NO_TASKS)
    assert response.status_code == 302, errors(response)
    assert console.get(url).status_code == 200
    assert console.get(f"{url}{pk}/delete/").status_code == 200
    assert console.post(f"{url}{pk}/delete/", {"post": "yes"}).status_code == 302
    assert set(IntervalSchedule.objects.values_list("pk", flat=True)) == before


@each_case("kind", ["crontabschedule", "solarschedule", "clockedschedule"])
def test_other_kinds_of_schedule_have_no_page(console: Client, kind: str) -> None:
    assert console.get(f"{LIST}{kind}/").status_code == 404
    assert (
        f'name="{kind.removesuffix("schedule")}"'
        not in console.get(f"{TASKS}add/").content.decode()
    )


def test_interval_lists_its_tasks(console: Client) -> None:
    interval = PeriodicTask.objects.get(name="Sweep").interval
    page = console.get(f"{LIST}intervalschedule/{interval.pk}/change/").content.decode()
    assert "Tasks with this interval" in page
    assert "notifications.sweep" in page


def act(console: Client, action: str) -> str:
    """Run an admin action on the sweep task; return the resulting page."""
    sweep = PeriodicTask.objects.get(name="Sweep")
    form = {"action": action, "_selected_action": str(sweep.pk)}
    return console.post(TASKS, form, follow=True).content.decode()


def test_tasks_are_disabled_and_enabled(console: Client) -> None:
    assert "Disabled: 1." in act(console, "disable_tasks")
    assert not PeriodicTask.objects.get(name="Sweep").enabled
    assert "Enabled: 1." in act(console, "enable_tasks")
    assert PeriodicTask.objects.get(name="Sweep").enabled


def test_task_is_run_now(console: Client, broker: redis.Redis) -> None:
    assert "Sweep: queued." in act(console, "run_tasks")
    assert broker.llen("service") == 1


def test_unknown_task_is_not_run(console: Client, broker: redis.Redis) -> None:
    PeriodicTask.objects.filter(name="Sweep").update(task="notifications.nothing")
    assert "unknown task notifications.nothing" in act(console, "run_tasks")
    assert broker.llen("service") == 0


def test_task_is_not_run_without_the_broker(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise OSError

    monkeypatch.setattr(current_app, "send_task", refuse)
    assert "broker unavailable (OSError)" in act(console, "run_tasks")


def test_sweep_runs_every_15_seconds_and_others_every_minute() -> None:
    every = {task.task: task.interval.every for task in PeriodicTask.objects.all()}
    assert every.pop(schedule.SWEEP) == sweeper.SWEEP_SECONDS == 15
    assert set(every.values()) == {60}


def test_interval_in_use_can_not_be_deleted(console: Client) -> None:
    interval = PeriodicTask.objects.get(name="Sweep").interval
    url = f"{LIST}intervalschedule/{interval.pk}/delete/"
    assert console.post(url, {"post": "yes"}).status_code == 403
    form = {"action": "delete_selected", "_selected_action": str(interval.pk), "post": "yes"}
    console.post(f"{LIST}intervalschedule/", form)
    assert PeriodicTask.objects.filter(name="Sweep").exists()


def test_only_task_of_its_kind_can_not_be_deleted(console: Client) -> None:
    sweep = PeriodicTask.objects.get(name="Sweep")
    url = f"{TASKS}{sweep.pk}/delete/"
    assert console.post(url, {"post": "yes"}).status_code == 403
    form = {"action": "delete_selected", "_selected_action": str(sweep.pk), "post": "yes"}
    console.post(TASKS, form)
    assert PeriodicTask.objects.filter(name="Sweep").exists()
    second = PeriodicTask.objects.create(name="Twice", task=sweep.task, interval=sweep.interval)
    assert console.post(f"{TASKS}{second.pk}/delete/", {"post": "yes"}).status_code == 302


def test_list_of_intervals_shows_their_tasks(console: Client) -> None:
    page = console.get(f"{LIST}intervalschedule/").content.decode()
    assert "Every 15 seconds" in page
    assert "Sweep" in page
    assert "Every 3 hours" in page
    assert "Not used" in page


@each_case("query", ["sweep", "Swe", "notifications.sw"])
def test_task_is_found_by_part_of_its_name(console: Client, query: str) -> None:
    page = console.get(TASKS, {"q": query}).content.decode()
    assert "notifications.sweep" in page
    assert "notifications.retention" not in page
