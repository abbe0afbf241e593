"""Every queue is consumed, and a message holds ids and nothing else."""

import ast
import inspect
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from celery import Task
from django.conf import settings
from django_celery_beat.models import PeriodicTask

from notifications import hints, tasks
from notifications.states import Channel, Priority
from notifyproject.celery import app
from notifyproject.settings.base import SERVICE_QUEUE, queue_names

from .code import ROOT, SERVICE, calls, files, text

PUBLISHERS = {
    "notifications/hints.py": "hints go to the queue of their channel and priority",
    "notifyproject/admin/beat.py": "an operator starts a periodic task now",
}
"""Who publishes messages, and which."""
COMMANDS = ("docker-compose.yml", "Makefile", "Dockerfile", "notifyproject/stack/running.py")


def our_tasks() -> dict[str, Task]:
    app.loader.import_default_modules()
    return {name: task for name, task in app.tasks.items() if name.startswith("notifications.")}


def test_there_are_tasks() -> None:
    assert set(our_tasks()) == {hints.DELIVER, "notifications.sweep"}


@pytest.mark.parametrize("priority", list(Priority))
@pytest.mark.parametrize("channel", list(Channel))
def test_every_hint_goes_to_a_queue_that_is_consumed(channel: Channel, priority: Priority) -> None:
    assert hints.queue_of(channel, priority) in {
        queue.name for queue in settings.CELERY_TASK_QUEUES
    }


@pytest.mark.parametrize("name", sorted(our_tasks()))
def test_every_task_goes_to_a_queue_that_is_consumed(name: str) -> None:
    route = app.amqp.router.route({}, name)
    assert route["queue"].name in queue_names()


def test_what_has_no_queue_of_its_own_goes_to_the_services() -> None:
    assert settings.CELERY_TASK_DEFAULT_QUEUE == SERVICE_QUEUE
    assert SERVICE_QUEUE in queue_names()


def test_no_queue_comes_into_being_by_a_slip_of_the_pen() -> None:
    assert not settings.CELERY_TASK_CREATE_MISSING_QUEUES
    assert not app.conf.task_create_missing_queues


def test_a_worker_consumes_every_queue_in_order() -> None:
    assert [queue.name for queue in settings.CELERY_TASK_QUEUES] == queue_names()
    assert list(app.amqp.queues) == queue_names()


@pytest.mark.parametrize("name", COMMANDS)
def test_no_worker_is_started_for_some_queues_only(name: str) -> None:
    words = (ROOT / name).read_text().replace('"', " ").replace(",", " ").split()
    assert not {"-Q", "--queues", "-X", "--exclude-queues"} & set(words)


@pytest.mark.usefixtures("db")
def test_what_beat_starts_is_a_task_there_is() -> None:
    scheduled = list(PeriodicTask.objects.exclude(task="celery.backend_cleanup"))
    assert scheduled
    for row in scheduled:
        assert row.task in our_tasks()
        assert row.queue is None or row.queue in queue_names()


@pytest.mark.parametrize("task", [tasks.deliver, tasks.sweep], ids=lambda task: task.name)
def test_a_message_holds_ids_and_words_only(task: Any) -> None:
    hinted = get_type_hints(inspect.unwrap(task.run))
    hinted.pop("return")
    assert set(hinted.values()) <= {str, list[str]}


def publishes(call: ast.Call) -> bool:
    """Return whether a call sends a Celery message."""
    called = ast.unparse(call.func)
    name = called.rpartition(".")[2]
    return name in ("send_task", "apply_async") or (name == "delay" and "task" in called)


def test_only_hints_are_published() -> None:
    published = {
        str(path) for path in files(*SERVICE) for _, call in calls(path) if publishes(call)
    }
    assert published == set(PUBLISHERS)


def test_a_task_holds_no_state_and_retries_nothing() -> None:
    """What is tried again, and when, stands in MongoDB."""
    for forbidden in ("bind=True", "autoretry_for", "self.retry", "max_retries", ".get("):
        assert forbidden not in text(Path("notifications", "tasks.py"))
    assert settings.CELERY_TASK_IGNORE_RESULT
    assert not app.conf.result_backend
