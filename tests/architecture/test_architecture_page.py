"""docs/architecture.md names existing files and packages, and its numbers match the code."""

import re
from pathlib import Path

from django.apps import apps
from django_mongodb_backend.models import EmbeddedModel

from delivery.sweeper import SWEEP_SECONDS
from notifications.store.leases import LEASE, LEASES
from notifyproject.platform import clock_check
from tests.support.source import ROOT, SERVICE

PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_every_named_path_exists() -> None:
    named = set(re.findall(r"`((?:[\w]+/)+(?:[\w]+\.(?:py|md))?)`", PAGE))
    assert len(named) > 40
    inside = {"db/", "platform/", "serving/", "stack/", "supervision/"}
    missing = {name for name in named - inside if not Path(ROOT, name).exists()}
    assert missing == set()
    assert all(Path(ROOT, "notifyproject", name).is_dir() for name in inside)


def test_every_service_package_has_a_row() -> None:
    lines = re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE)
    assert sorted(lines) == sorted((*SERVICE, "sandbox"))


def test_every_collection_is_in_one_row() -> None:
    section = PAGE.partition("## Processes and collections")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    tables = {
        model._meta.db_table
        for model in apps.get_models()
        if model.__module__.split(".")[0] in SERVICE and not issubclass(model, EmbeddedModel)
    }
    assert sorted(listed) == sorted({*tables, "cache_versions"})


def test_numbers_match_the_code() -> None:
    assert f"finds due work in MongoDB every {SWEEP_SECONDS} seconds" in PAGE
    assert f"every {clock_check.CHECK_SECONDS:.0f} seconds" in PAGE
    assert f"a lease of {LEASE.total_seconds():.0f} seconds" in PAGE
    assert LEASES.max_claims == 3
    assert "After three claims" in PAGE
