"""Fixtures every test may use. The database is real; what a test wrote is gone after it."""

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import redis
from cryptography.hazmat.primitives import serialization
from django.conf import settings
from django.core.cache import cache as django_cache
from django.db import connection
from pymongo import WriteConcern

from monitoring import alert_rules
from notifications import callback_events
from notifications.catalog import retention, types
from notifications.content import templates as content_templates
from notifications.queueing import backlog
from notifyproject.platform import broker as platform_broker
from notifyproject.platform import cache, valkey
from providers import registry
from sandbox import credentials, server
from tests.support.mongo.written_collections import written
from tests.support.providers import fcm_schema
from tests.support.waiting import LIMIT

pytest_plugins = (
    "tests.support.plugins.api_clients",
    "tests.support.plugins.console",
    "tests.support.plugins.delivery",
    "tests.support.plugins.shipped_types",
)

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("notifyproject", deadline=None)
hypothesis.settings.load_profile("notifyproject")

KEPT = frozenset({"django_migrations", "django_content_type", "auth_permission"})
"""Collections that migrate fills and no test changes."""


@pytest.fixture(scope="session", autouse=True)
def _a_private_key_is_read_once() -> Iterator[None]:
    """To read an RSA key takes 40 ms of arithmetic, and each sandbox reads its own twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            serialization,
            "load_pem_private_key",
            functools.cache(serialization.load_pem_private_key),
        )
        yield


@pytest.fixture(scope="session", autouse=True)
def _whoever_is_late_is_waited_for() -> Iterator[None]:
    """On a machine at its limit Valkey is late now and then, and no test is to run without it."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (platform_broker, valkey):
            patch.setattr(module, "TIMEOUT", LIMIT)
        patch.setattr(server, "START_TIMEOUT", LIMIT)
        yield


@pytest.fixture(scope="session")
def google_account_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one service account for the sandboxes of all tests: a new key takes its time."""
    folder = tmp_path_factory.mktemp("google")
    credentials.load_service_account(folder)
    return folder / credentials.SERVICE_ACCOUNT_FILE


@pytest.fixture(scope="session")
def _database(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Make the test database by the real migrations, once for each worker."""
    with django_db_blocker.unblock():
        assert settings.DATABASES["default"]["NAME"].startswith("test_")
        written.names.clear()
        yield


@pytest.fixture
def db(_database: None, django_db_blocker: Any) -> Iterator[None]:
    """Give a test the database, with the shipped types and the schedule in it."""
    with django_db_blocker.unblock():
        cache.clear_all()
        content_templates.clear()
        yield
        _empty_what_was_written()


@pytest.fixture
def transactional_db(db: None) -> None:
    """Give a test the database: there are no transactions to speak of."""


@pytest.fixture
def broker() -> Iterator[redis.Redis]:
    """Give a test an empty Valkey, whatever another test found when it asked."""
    client = redis.Redis.from_url(settings.REDIS_URL)
    client.flushdb()
    valkey._pause.end()
    yield client
    client.flushdb()
    client.close()


@pytest.fixture
def valkey_anew() -> Iterator[None]:
    """Have a test ask Valkey like a new process, whatever another test found when it asked."""
    valkey.clear()
    yield
    valkey.clear()


@pytest.fixture
def pauses_anew(valkey_anew: None) -> Iterator[None]:
    """Have a test read anew which providers are paused, and how they are."""
    cache.clear_all()
    yield
    cache.clear_all()


@pytest.fixture
def backlog_anew() -> Iterator[None]:
    """Remember no other test's backlog, and leave none behind."""
    backlog.clear()
    yield
    backlog.clear()


@pytest.fixture
def templates(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """Give a test a folder of templates of its own, with the real layout in it."""
    folder = tmp_path / "templates" / "notifications"
    shipped = Path(settings.BASE_DIR, "templates", "notifications")
    shutil.copytree(shipped / "_layout", folder / "_layout")
    settings.BASE_DIR = tmp_path
    content_templates.clear()
    yield folder
    content_templates.clear()


@pytest.fixture(scope="session", autouse=True)
def _every_push_is_looked_at() -> Iterator[None]:
    with fcm_schema.watching():
        yield


@pytest.fixture(autouse=True)
def _no_memory_between_tests() -> Iterator[None]:
    platform_broker._health = platform_broker._BrokerHealth()
    cache.clear_all()
    callback_events.clear()
    yield
    registry.clear()
    registry.sendgrid.cache_clear()
    django_cache.clear()
    assert fcm_schema.take_noted() == [], "a push that FCM's schema does not allow"


def _empty_what_was_written() -> None:
    # Every read is a local one: nobody has to wait until a majority has forgotten it, too.
    database = connection.database.with_options(write_concern=WriteConcern(w=1, j=False))
    assert database.name.startswith("test_")
    names = set(database.list_collection_names()) if written.by_others else written.names
    names = names - KEPT
    written.names.clear()
    written.by_others = False
    for name in names:
        if not name.startswith("django_celery_beat"):
            database[name].delete_many({})
    if "notification_types" in names:
        types.add_missing_types()
    if "alert_rules" in names:
        alert_rules.add_missing_rules()
    if "retention_policies" in names:
        retention.add_missing_policies()
    written.names.clear()
