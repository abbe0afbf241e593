"""Fixtures for all tests. The database is real, and emptied after each test."""

import functools
import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import redis
from cryptography.hazmat.primitives import serialization
from django.conf import settings
from django.contrib import admin
from django.core.cache import cache as django_cache
from django.db import connection
from pymongo import WriteConcern

from monitoring import rollup
from notifications import callback_events
from notifications.content import looks
from notifications.content import templates as content_templates
from notifications.documents.notification import NOTIFICATIONS
from notifications.queueing import backlog
from notifications.store.search_keys import search_keys_of
from notifyproject.platform import broker as platform_broker
from notifyproject.platform import cache, middleware, valkey
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

# No deadline, because the time of an example depends on the machine. The examples follow from the
# test's own source, so that a change is never refused for an example that it has not made.
hypothesis.settings.register_profile(
    "notifyproject", deadline=None, derandomize="NEW_EXAMPLES" not in os.environ
)
hypothesis.settings.load_profile("notifyproject")

# As the URLs do, for tests that list the console's pages.
admin.autodiscover()

KEPT = frozenset({"django_migrations", "django_content_type", "auth_permission"})
"""Collections that migrations fill and no test changes."""
RESTORED = ("notification_types", "alert_rules", "retention_policies")
"""Collections that migrations fill and tests change."""
Restored = Mapping[str, list[dict[str, Any]]]


@pytest.fixture(scope="session", autouse=True)
def _a_private_key_is_read_once() -> Iterator[None]:
    """Cache private keys: each sandbox reads its RSA key twice, which takes 40 ms of CPU time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            serialization,
            "load_pem_private_key",
            functools.cache(serialization.load_pem_private_key),
        )
        yield


@pytest.fixture(scope="session", autouse=True)
def _whoever_is_late_is_waited_for() -> Iterator[None]:
    """Lengthen time limits, so that on a busy machine no test runs as if without a server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(valkey, "TIMEOUT", LIMIT)
        patch.setattr(middleware, "DATABASE_SECONDS", LIMIT)
        patch.setattr(server, "START_TIMEOUT", LIMIT)
        yield


@pytest.fixture(scope="session", autouse=True)
def _first_roll_up_goes_back_two_hours() -> Iterator[None]:
    """Begin metrics with fewer minutes: those of a day without changes take 600 commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollup, "FIRST_LOOKBACK", timedelta(hours=2))
        yield


@pytest.fixture(scope="session")
def google_account_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create one service account for the sandboxes of all tests, because a new key is slow."""
    folder = tmp_path_factory.mktemp("google")
    credentials.load_service_account(folder)
    return folder / credentials.SERVICE_ACCOUNT_FILE


@pytest.fixture(scope="session")
def _database(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Create the test database by the real migrations, once for each xdist worker."""
    with django_db_blocker.unblock():
        assert settings.DATABASES["default"]["NAME"].startswith("test_")
        written.forget()
        yield


@pytest.fixture(scope="session")
def _restored(_database: None) -> Restored:
    """Return the documents of RESTORED as migrations store them."""
    return {name: list(connection.database[name].find()) for name in RESTORED}


@pytest.fixture
def db(_restored: Restored, django_db_blocker: Any) -> Iterator[None]:
    """Give a test the database with the shipped types and schedule; empty it afterwards."""
    with django_db_blocker.unblock():
        cache.clear_all()
        content_templates.clear()
        looks.clear()
        yield
        _empty_what_was_written(restored=_restored)


@pytest.fixture
def search_keys_follow(db: None) -> Iterator[None]:
    """Compare the search keys of all notifications with what they derive from, after a test."""
    yield
    for document in NOTIFICATIONS().find():
        assert sorted(document["search_keys"]) == sorted(search_keys_of(document))


@pytest.fixture
def transactional_db(db: None) -> None:
    """Give a test the database, as ``db`` does, because no test runs in a transaction."""


class SharedValkey(redis.Redis):
    """A client of the Valkey of all xdist workers, each of which has a database of its own."""

    AFFECT_ALL = ("FLUSHALL", "SCRIPT FLUSH", "CLIENT PAUSE", "CONFIG SET", "SWAPDB")

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run a command, but for those that the tests of other workers would notice."""
        command = " ".join(map(str, args[:2])).upper()
        assert not command.startswith(self.AFFECT_ALL), f"{command} needs an own_valkey()"
        return super().execute_command(*args, **options)


@pytest.fixture
def broker() -> Iterator[redis.Redis]:
    """Return a client of an empty Valkey, which counts as available."""
    client = SharedValkey.from_url(settings.REDIS_URL)
    client.flushdb()
    valkey._health.reset()
    yield client
    client.flushdb()
    client.close()


@pytest.fixture
def valkey_anew() -> Iterator[None]:
    """Reset the Valkey client, as in a new process, before and after a test."""
    valkey.clear()
    yield
    valkey.clear()


@pytest.fixture
def pauses_anew(valkey_anew: None) -> Iterator[None]:
    """Clear the caches of provider pauses and states before and after a test."""
    cache.clear_all()
    yield
    cache.clear_all()


@pytest.fixture
def backlog_anew() -> Iterator[None]:
    """Clear the cached size of the backlog before and after a test."""
    backlog.clear()
    yield
    backlog.clear()


@pytest.fixture
def templates(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """Return an empty folder of template files, with only the shipped email layout."""
    folder = tmp_path / "templates" / "notifications"
    shipped = Path(settings.BASE_DIR, "templates", "notifications")
    shutil.copytree(shipped / "_layout", folder / "_layout")
    settings.BASE_DIR = tmp_path
    content_templates.clear()
    looks.clear()
    yield folder
    content_templates.clear()
    looks.clear()


@pytest.fixture(scope="session", autouse=True)
def _every_push_is_looked_at() -> Iterator[None]:
    with fcm_schema.watching():
        yield


@pytest.fixture(autouse=True)
def _no_memory_between_tests() -> Iterator[None]:
    platform_broker._health.reset()
    cache.clear_all()
    callback_events.clear()
    yield
    registry.clear()
    django_cache.clear()
    assert fcm_schema.take_noted() == [], "a push that FCM's schema does not allow"


def _empty_what_was_written(*, restored: Restored) -> None:
    # Tests read locally, so deletions need no majority.
    database = connection.database.with_options(write_concern=WriteConcern(w=1, j=False))
    assert database.name.startswith("test_")
    names = set(database.list_collection_names()) if written.by_others else written.names
    names = names - KEPT
    for name in names:
        if not name.startswith("django_celery_beat"):
            database[name].delete_many({})
            if name in restored:
                database[name].insert_many(restored[name])
    written.forget()
