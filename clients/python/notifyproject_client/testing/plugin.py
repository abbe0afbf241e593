"""Fixtures of pytest for apps that send. They are there once the client is installed.

``NOTIFY_URL`` and ``NOTIFY_KEY``, or the options ``notify_url`` and ``notify_key`` of pytest's
configuration, name a service and a test key. Without a URL, the service is in memory, and
``NOTIFY_TYPES`` or ``notify_types`` is the folder of its types.
"""

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..notifier import Notifier
    from .clock import Clock
    from .outbox import Outbox
    from .service import Service

TEST_KEY = "ntf_test_"
OPTIONS = {
    "notify_url": "the service that tests send to; without one, it is in memory",
    "notify_key": "its test keys, one for each worker of pytest-xdist",
    "notify_types": "the folder of types of the service in memory, as `notify pull` writes it",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of pytest's configuration."""
    for name, text in OPTIONS.items():
        parser.addini(name, text, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse keys that tests must not use, before any test runs."""
    url, keys = _option(config, "notify_url"), _keys(config)
    if any(not key.startswith(TEST_KEY) for key in keys):
        raise pytest.UsageError(
            "NOTIFY_KEY is a live key: tests would send to people. Expected a key that begins with "
            f"{TEST_KEY}, from `manage.py create_api_client my-app-tests --test`."
        )
    if url and not keys:
        raise pytest.UsageError("NOTIFY_URL needs NOTIFY_KEY, a test key of this service.")
    workers = getattr(config.option, "numprocesses", None)
    if url and isinstance(workers, int) and workers > len(keys):
        raise pytest.UsageError(
            f"NOTIFY_KEY has {len(keys)} of the {workers} keys that pytest -n {workers} needs. "
            "Tests that run at once need a test client each: outbox and clock are the client's."
        )


@pytest.fixture(scope="session")
def _notify_session(pytestconfig: pytest.Config) -> "Service":
    # Here and not above: pytest imports this module in each run where the client is installed.
    from .service import Service, in_memory

    if url := _option(pytestconfig, "notify_url"):
        worker = getattr(pytestconfig, "workerinput", {}).get("workerid", "gw0")
        service = Service(url=url, key=_keys(pytestconfig)[int(worker.removeprefix("gw"))])
        if problem := service.problem():
            # Else each test would repeat its requests, and fail with a traceback of the client.
            pytest.fail(problem, pytrace=False)
        return service
    folder = _option(pytestconfig, "notify_types")
    return in_memory(pytestconfig.rootpath / folder if folder else None)


@pytest.fixture
def notify_service(_notify_session: "Service") -> "Service":
    """Return where tests send: ``url``, ``key``, and the ``transport`` of a notifier."""
    if _notify_session.memory is not None:
        _notify_session.memory.reset()
    return _notify_session


@pytest.fixture
def notify(notify_service: "Service") -> Iterator["Notifier"]:
    """Yield a notifier with the test key."""
    with notify_service.notifier() as notifier:
        yield notifier


@pytest.fixture
def notify_outbox(notify_service: "Service", notify: "Notifier") -> "Outbox":
    """Return the outbox, without what earlier tests sent or left to be sent."""
    outbox = notify_service.outbox(notify)
    outbox.begin()
    return outbox


@pytest.fixture
def notify_clock(request: pytest.FixtureRequest, notify_service: "Service") -> Iterator["Clock"]:
    """Yield the test clock, which shows real time before and after the test."""
    if notify_service.memory is None:
        # What earlier tests left to be sent would happen in this one.
        request.getfixturevalue("notify_outbox")
    with notify_service.clock() as clock:
        clock.reset()
        try:
            yield clock
        finally:
            clock.reset()


def _keys(config: pytest.Config) -> list[str]:
    return re.findall(r"[^\s,]+", _option(config, "notify_key"))


def _option(config: pytest.Config, name: str) -> str:
    value: Any = os.environ.get(name.upper()) or config.getini(name)
    return str(value)
