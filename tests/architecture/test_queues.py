"""Every queue is consumed, and messages contain only IDs."""

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml
from celery import Task
from django.conf import settings
from django_celery_beat.models import PeriodicTask

from callbacks import outbox
from domain import queues
from domain.channels import Channel
from domain.states import Priority
from notifications import callback_events
from notifications.queueing import wakeups
from notifyproject.celery import app
from notifyproject.settings.base import queue_names, urgent_queue_names
from notifyproject.stack import running
from tasks import schedule, tasks
from tests.support.source import ROOT, SERVICE, calls, files, text
from tests.support.subprocess import python
from tests.support.tables import each_case

PUBLISHERS = {
    "notifyproject/platform/broker.py": "wake-ups, each to the queue that its publisher names",
    "console/periodic_tasks.py": "an operator starts a periodic task now",
}
"""Files that publish Celery messages, and what they publish."""


def our_tasks() -> dict[str, Task]:
    app.loader.import_default_modules()
    return {name: task for name, task in app.tasks.items() if name.startswith("notifications.")}


def test_all_tasks_are_registered() -> None:
    assert set(our_tasks()) == {
        wakeups.DELIVER,
        wakeups.PULL,
        wakeups.BROADCAST,
        wakeups.FILE,
        wakeups.HEARTBEAT,
        wakeups.BULK_OPERATION,
        wakeups.CLOSE_DIGESTS,
        wakeups.TEST_CLOCK,
        schedule.ALERTS,
        schedule.ROLLUP,
        schedule.RETENTION,
        "notifications.sweep",
        callback_events.PUBLISH,
        outbox.CALL_TASK,
        schedule.CALLBACKS,
    }


@each_case("priority", list(Priority))
@each_case("channel", list(Channel))
def test_every_wakeup_queue_is_consumed(channel: Channel, priority: Priority) -> None:
    consumed = {queue.name for queue in settings.CELERY_TASK_QUEUES}
    assert queues.queue_name(channel, priority) in consumed


def test_broadcast_queue_comes_after_all_delivery_queues() -> None:
    order = queue_names()
    delivery_queues = [
        queues.queue_name(channel, priority) for channel in Channel for priority in Priority
    ]
    assert max(map(order.index, delivery_queues)) < order.index(queues.BROADCASTS)
    assert queues.BROADCASTS not in urgent_queue_names()


def test_closing_of_digests_holds_up_no_critical_delivery() -> None:
    order = queue_names()
    low = [queues.queue_name(channel, Priority.LOW) for channel in Channel]
    normal = [queues.queue_name(channel, Priority.NORMAL) for channel in Channel]
    assert max(map(order.index, normal)) < order.index(queues.DIGESTS) < min(map(order.index, low))
    assert queues.DIGESTS not in urgent_queue_names()


@each_case("name", our_tasks)
def test_every_task_queue_is_consumed(name: str) -> None:
    route = app.amqp.router.route({}, name)
    assert route["queue"].name in queue_names()


def test_default_queue_is_the_service_queue() -> None:
    assert settings.CELERY_TASK_DEFAULT_QUEUE == queues.SERVICE
    assert queues.SERVICE in queue_names()


def test_missing_queues_are_not_created() -> None:
    assert not settings.CELERY_TASK_CREATE_MISSING_QUEUES
    assert not app.conf.task_create_missing_queues


def test_worker_consumes_every_queue_in_order() -> None:
    assert [queue.name for queue in settings.CELERY_TASK_QUEUES] == queue_names()
    assert list(app.amqp.queues) == queue_names()


def workers_of_the_stack() -> dict[str, list[str]]:
    programs = running.programs(running.Addresses(port=8000))
    return {p.name: list(p.command) for p in programs if "worker" in p.command}


def workers_of_compose() -> dict[str, list[str]]:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    commands = {name: service.get("command", []) for name, service in services.items()}
    return {name: command for name, command in commands.items() if "worker" in command}


@pytest.mark.parametrize("workers", [workers_of_the_stack, workers_of_compose])
def test_one_worker_serves_all_queues_and_one_the_urgent_queues(
    workers: Callable[[], dict[str, list[str]]],
) -> None:
    found = workers()
    assert set(found) == {"worker", "urgent"}
    assert not {"-Q", "--queues", "-X", "--exclude-queues"} & set(found["worker"])
    assert "--urgent" in found["urgent"]


URGENT_WORKER = """
from notifyproject.celery import app

served = []
app.Worker.on_start = lambda worker: served.extend(app.amqp.queues.consume_from)
app.Worker.start = lambda worker: worker.on_start()
app.worker_main(["worker", "--urgent"])
print(",".join(served))
"""


def test_urgent_worker_takes_the_critical_queue_of_each_channel() -> None:
    (*_, served) = python("-c", URGENT_WORKER).split()
    assert served.split(",") == urgent_queue_names()


@pytest.mark.usefixtures("db")
def test_periodic_tasks_exist() -> None:
    scheduled = list(PeriodicTask.objects.all())
    assert scheduled
    for row in scheduled:
        assert row.task in our_tasks()
        assert row.queue is None or row.queue in queue_names()


@each_case(
    "task",
    [
        tasks.handle_wakeup,
        tasks.pull,
        tasks.run_broadcast,
        tasks.run_bulk_operation,
        tasks.record_worker_heartbeat,
        tasks.sweep,
        tasks.roll_up,
        tasks.evaluate_alerts,
        tasks.remove_content,
        tasks.publish_callback_events,
        tasks.send_callbacks,
        tasks.sweep_callbacks,
    ],
)
def test_task_arguments_are_ids_and_words(task: Any) -> None:
    types = get_type_hints(inspect.unwrap(task.run))
    types.pop("return")
    assert set(types.values()) <= {str, list[str], tuple[int, str] | None}


def publishes(call: ast.Call) -> bool:
    name = getattr(call.func, "attr", "")
    return name in ("send_task", "apply_async", "as_task_v2") or (
        name == "delay" and "task" in ast.unparse(call.func)
    )


def test_messages_are_published_in_two_places_only() -> None:
    published = {
        str(path) for path in files(*SERVICE) for _, call in calls(path) if publishes(call)
    }
    assert published == set(PUBLISHERS)


def test_tasks_hold_no_state_and_have_no_celery_retries() -> None:
    for forbidden in ("bind=True", "autoretry_for", "self.retry", "max_retries", ".get("):
        assert forbidden not in text(Path("tasks", "tasks.py"))
    assert settings.CELERY_TASK_IGNORE_RESULT
    assert not app.conf.result_backend
