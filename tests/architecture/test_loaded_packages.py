"""What a program loads that another needs costs its memory, and time at each start."""

import json

import pytest

from tests.support.subprocess import python

WORKER = """
from notifyproject.celery import app
app.loader.init_worker()
import celery.apps.beat, celery.apps.worker, tasks.beat
"""
"""Beat loads the tasks, too."""
STREAM = "import notifyproject.asgi, notifyproject.serving.stream_worker"
WEB = "import notifyproject.wsgi, notifyproject.serving.worker"
SHOWN = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
OF_THE_CONSOLE = (
    *("console.admin", "console.notifications.list", "notifyproject.urls", "unfold.admin"),
    *("api.urls", "drf_spectacular.views"),
)
"""Its pages, and what else the URLs load."""
NOBODYS = ("aiohttp", "django.contrib.gis.gdal", "sandbox", "wizard", "notifyproject.stack")
OF_REQUESTS = "jsonschema_rs"
"""Checks the data of requests, and is loaded before the first one."""


@pytest.mark.parametrize(
    ("program", "others"),
    [
        (
            WORKER,
            (
                *OF_THE_CONSOLE,
                "api",
                "gunicorn",
                "rest_framework.views",
                "prometheus_client",
                OF_REQUESTS,
            ),
        ),
        (
            STREAM,
            (*OF_THE_CONSOLE, "delivery.worker", "prometheus_client", "tasks.tasks", OF_REQUESTS),
        ),
        (WEB, ("celery.bin", "delivery.worker", "prompt_toolkit", "tasks.tasks")),
    ],
    ids=["worker and beat", "stream", "web"],
)
def test_program_loads_nothing_that_only_others_need(program: str, others: tuple[str, ...]) -> None:
    loaded = set(json.loads(python("-c", program + SHOWN).splitlines()[-1]))
    assert sorted(loaded.intersection((*NOBODYS, *others))) == []
