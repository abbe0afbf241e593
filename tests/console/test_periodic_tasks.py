"""beat's schedule in the console: every page works on MongoDB, even with a crontab schedule."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import redis
from celery import current_app
from django.test import Client
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)

from delivery import sweeper
from domain.time import utc_now
from tasks import schedule

LIST = "/admin/django_celery_beat/"
TASKS = f"{LIST}periodictask/"
MODELS = (PeriodicTask, IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule)


@pytest.fixture(autouse=True)
def nightly(db: None) -> Iterator[CrontabSchedule]:
    """Add a crontab to the shipped schedule; restore the schedule after the test."""
    yield CrontabSchedule.objects.create(minute="30", hour="4")
    for model in MODELS:
        model.objects.all().delete()
    schedule.add_missing_tasks()


def task_form(**fields: Any) -> dict[str, Any]:
    default = {"name": "Tidy up", "regtask": "", "task": "notifications.sweep", "enabled": "on"}
    default |= {"args": "[]", "kwargs": "{}", "headers": "{}", "priority": ""}
    return default | fields


def errors(response: Any) -> str:
    return str(response.context["errors"]) if response.context else ""


def test_task_is_created_changed_and_deleted(console: Client, nightly: CrontabSchedule) -> None:
    assert console.get(f"{TASKS}add/").status_code == 200
    response = console.post(f"{TASKS}add/", task_form(crontab=str(nightly.pk)))
    assert response.status_code == 302, errors(response)
    task = PeriodicTask.objects.get(name="Tidy up")
    assert task.crontab == nightly
    page = console.get(f"{TASKS}{task.pk}/change/").content.decode()
    assert "At 04:30 AM" in page
    assert "notifications.deliver" in page
    changed = task_form(crontab=str(nightly.pk), description="Every night.", enabled="")
    response = console.post(f"{TASKS}{task.pk}/change/", changed)
    assert response.status_code == 302, errors(response)
    task.refresh_from_db()
    assert (task.description, task.enabled) == ("Every night.", False)
    assert "At 04:30 AM" in console.get(TASKS).content.decode()
    assert console.get(f"{TASKS}{task.pk}/delete/").status_code == 200
    assert console.post(f"{TASKS}{task.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not PeriodicTask.objects.filter(pk=task.pk).exists()
    assert CrontabSchedule.objects.filter(pk=nightly.pk).exists()


def test_registered_task_is_selected(console: Client, nightly: CrontabSchedule) -> None:
    chosen = task_form(regtask="notifications.deliver", task="", crontab=str(nightly.pk))
    assert console.post(f"{TASKS}add/", chosen).status_code == 302
    assert PeriodicTask.objects.get(name="Tidy up").task == "notifications.deliver"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "must be set"),
        ({"interval": "both", "crontab": "both"}, "Only one of"),
        ({"crontab": "both", "args": "{"}, "Unable to parse JSON"),
        ({"crontab": "both", "args": "[" * 70_000}, "Unable to parse JSON"),
        ({"crontab": "both", "kwargs": '{"a":' * 70_000}, "Unable to parse JSON"),
        ({"crontab": "both", "task": ""}, "Need name of task"),
        ({"crontab": "both", "task": "x" * 70_000}, "at most 200 characters"),
        ({"crontab": "both", "task": "a\0b"}, "Null characters"),
        ({"crontab": "both", "name": "Sweep"}, "already exists"),
    ],
)
def test_invalid_task_is_refused(
    console: Client, nightly: CrontabSchedule, fields: dict[str, str], problem: str
) -> None:
    keys = {"crontab": str(nightly.pk), "interval": str(IntervalSchedule.objects.first().pk)}
    sent = {name: keys[name] if value == "both" else value for name, value in fields.items()}
    response = console.post(f"{TASKS}add/", task_form(**sent))
    assert response.status_code == 200
    assert problem in response.content.decode()
    assert PeriodicTask.objects.count() == len(schedule.PERIODIC_TASKS)


ANY_DAY = {"day_of_month": "*", "month_of_year": "*"}
SCHEDULES = [
    ("intervalschedule", {"every": "5", "period": "minutes"}, {"every": "7", "period": "minutes"}),
    (
        "crontabschedule",
        {"minute": "0", "hour": "6", "timezone": "Europe/Lisbon", "day_of_week": "*"} | ANY_DAY,
        {"minute": "1", "hour": "7", "timezone": "UTC", "day_of_week": "1"} | ANY_DAY,
    ),
    (
        "solarschedule",
        {"event": "sunrise", "latitude": "38.7", "longitude": "-9.1"},
        {"event": "sunset", "latitude": "38.7", "longitude": "-9.1"},
    ),
    (
        "clockedschedule",
        {"clocked_time_0": "2030-01-01", "clocked_time_1": "09:00:00"},
        {"clocked_time_0": "2031-01-01", "clocked_time_1": "09:00:00"},
    ),
]
NO_TASKS = {"periodictask_set-TOTAL_FORMS": "0", "periodictask_set-INITIAL_FORMS": "0"}


@pytest.mark.parametrize("zone", ["Mars/Base", "../../etc/passwd", "9" * 400])
def test_unknown_time_zone_of_a_schedule_is_refused(console: Client, zone: str) -> None:
    url, before = f"{LIST}crontabschedule/add/", CrontabSchedule.objects.count()
    crontab = {"minute": "0", "hour": "6", "timezone": "UTC", "day_of_week": "*"} | ANY_DAY
    refused = console.post(url, crontab | NO_TASKS | {"timezone": zone})
    assert "Select a valid choice" in errors(refused)
    assert CrontabSchedule.objects.count() == before
    # The form has its initial value beside each field, to tell which one has changed.
    assert console.post(url, crontab | NO_TASKS | {"initial-timezone": zone}).status_code == 302
    CrontabSchedule.objects.get(hour="6").delete()


@pytest.mark.parametrize(("name", "first", "second"), SCHEDULES, ids=[s[0] for s in SCHEDULES])
def test_schedule_is_created_changed_and_deleted(
    console: Client, name: str, first: dict[str, str], second: dict[str, str]
) -> None:
    model = {m._meta.model_name: m for m in MODELS}[name]
    before = set(model.objects.values_list("pk", flat=True))
    url = f"{LIST}{name}/"
    assert console.get(f"{url}add/").status_code == 200
    response = console.post(f"{url}add/", first | NO_TASKS)
    assert response.status_code == 302, errors(response)
    (pk,) = set(model.objects.values_list("pk", flat=True)) - before
    assert console.get(f"{url}{pk}/change/").status_code == 200
    response = console.post(f"{url}{pk}/change/", second | NO_TASKS)
    assert response.status_code == 302, errors(response)
    assert console.get(url).status_code == 200
    assert console.get(f"{url}{pk}/delete/").status_code == 200
    assert console.post(f"{url}{pk}/delete/", {"post": "yes"}).status_code == 302
    assert set(model.objects.values_list("pk", flat=True)) == before


def test_schedule_lists_its_tasks(console: Client) -> None:
    interval = PeriodicTask.objects.get(name="Sweep").interval
    page = console.get(f"{LIST}intervalschedule/{interval.pk}/change/").content.decode()
    assert "Tasks with this schedule" in page
    assert "notifications.sweep" in page


def test_list_shows_every_kind_of_schedule(console: Client) -> None:
    at = ClockedSchedule.objects.create(clocked_time=utc_now() + timedelta(days=1))
    sun = SolarSchedule.objects.create(event="sunrise", latitude=38.7, longitude=-9.1)
    PeriodicTask.objects.create(name="Once", task="notifications.sweep", clocked=at, one_off=True)
    PeriodicTask.objects.create(name="At dawn", task="notifications.sweep", solar=sun)
    page = console.get(TASKS).content.decode()
    assert "Every minute" in page or "Every 60 seconds" in page
    assert "Sunrise" in page
    assert f"{at.clocked_time:%Y-%m-%d}" in page


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
    every = {task.task: task.interval.every for task in PeriodicTask.objects.exclude(interval=None)}
    assert every.pop(schedule.SWEEP) == sweeper.SWEEP_SECONDS == 15
    assert set(every.values()) == {60}


def test_schedule_in_use_can_not_be_deleted(console: Client) -> None:
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


def test_lists_of_schedules_show_their_tasks(console: Client) -> None:
    page = console.get(f"{LIST}intervalschedule/").content.decode()
    assert "Every 15 seconds" in page
    assert "Sweep" in page
    crontab = CrontabSchedule.objects.create(minute="30", hour="6", timezone="Europe/Lisbon")
    page = console.get(f"{LIST}crontabschedule/").content.decode()
    for words in ("30 6 * * *", "Europe/Lisbon", "Not used"):
        assert words in page, words
    crontab.delete()


@pytest.mark.parametrize("query", ["sweep", "Swe", "notifications.sw"])
def test_task_is_found_by_part_of_its_name(console: Client, query: str) -> None:
    page = console.get(TASKS, {"q": query}).content.decode()
    assert "notifications.sweep" in page
    assert "notifications.retention" not in page
