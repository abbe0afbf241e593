"""``python -m tests.faults.crashing_process``: processes that die at a boundary.

Reads jobs, a JSON object on each line, and runs each in a forked child. Writes the number of the
signal that ended the child, or 0.
"""

import itertools
import json
import os
import signal
import sys
from datetime import datetime, timedelta
from typing import Any

import django
from django.conf import settings

DO = "do"


def _serve() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            _do(job)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, flush=True)


def _do(job: dict[str, Any]) -> None:
    """Run the job until its boundary."""
    from bson import ObjectId

    from delivery import pipeline, sweeper, test_clock
    from delivery.runtime import SendingRuntime
    from domain.channels import Channel
    from domain.time import utc_now
    from notifications.broadcasts import runner
    from notifyproject.platform import crash_points
    from providers import registry

    settings.SENDGRID_URL = settings.SANDBOX_URL = job["provider"]
    registry.clear()
    crash_points.reach = crash_points.make_reach(job["crash_at"])
    if "kills_at" in job:
        _kill_at_write(job["kills_at"])
    if job[DO] == "deliver":
        pipeline.dispatch(
            SendingRuntime(),
            [ObjectId(notification_id) for notification_id in job["ids"]],
            channel=Channel.EMAIL,
        )
    elif job[DO] == "broadcast":
        runner.run_page(ObjectId(job["id"]))
    elif job[DO] == "call_back":
        _call_back(job)
    elif job[DO] == "move_clock":
        test_clock.RECEIPT_SECONDS = 0.0
        ahead = timedelta(seconds=job["ahead"])
        test_clock.move(
            ObjectId(job["id"]),
            to=datetime.fromisoformat(job["to"]),
            real=lambda: utc_now() + ahead,
        )
    elif job[DO] == "sweep":
        sweeper.sweep(now=datetime.fromisoformat(job["now"]))
    else:
        _post(job)


def _call_back(job: dict[str, Any]) -> None:
    """Send a round of a client's callbacks. The response to a text's message kills the process."""
    from bson import ObjectId

    from callbacks import worker
    from notifyproject.platform import endpoints

    post = endpoints.post

    def posted(*args: Any, body: bytes, **options: Any) -> Any:
        response = post(*args, body=body, **options)
        if job["kills"].encode() in body:
            os.kill(os.getpid(), signal.SIGKILL)
        return response

    endpoints.post = posted
    settings.CALLBACK_LOOPBACK = True
    now = datetime.fromisoformat(job["now"])
    worker.run_round(ObjectId(job["id"]), clock=lambda: now)


def _kill_at_write(number: int) -> None:
    """Kill this process before its n-th write to MongoDB, or after it: 0, 1, 2, …, in order."""
    from pymongo.collection import Collection

    moments = itertools.count()

    def reach() -> None:
        if next(moments) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def killing(write: Any) -> Any:
        def wrapped(*args: Any, **options: Any) -> Any:
            reach()
            written = write(*args, **options)
            reach()
            return written

        return wrapped

    for name in ("insert_one", "update_one", "update_many", "find_one_and_update"):
        setattr(Collection, name, killing(getattr(Collection, name)))


def _post(job: dict[str, Any]) -> None:
    from django.test import Client

    Client().generic(
        "POST",
        job["path"],
        json.dumps(job["body"]),
        content_type="application/json",
        headers=job["headers"],
    )


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    django.setup()
    # What a first request would import is here before the first child.
    from notifyproject.wsgi import application

    assert application is not None
    _serve()
