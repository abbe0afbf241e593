"""Limits for recipients as files of ``notify``."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from access.models import Scope
from notifications.catalog import limits
from notifyproject.db.collections import collection
from tests.clients.cli.test_command import Notify, notify, parcel
from tests.clients.cli.test_designs import write
from tests.support.clients.api import App, new_app

__all__ = ["notify", "parcel"]
KEY, FILE = "limits/weekly", "limits/weekly.yaml"
TEXT = """\
# Agreed with marketing.
categories: [marketing]
types: [parcel_lost]
max: 3  # More was too much
period_seconds: 604800
"""
WEEKLY = {"categories": ["marketing"], "types": ["parcel_lost"], "max": 3}


@pytest.fixture(autouse=True)
def no_limits_left() -> Iterator[None]:
    yield
    collection("limits").delete_many({})
    limits.invalidate_limits()


@pytest.fixture
def weekly(parcel: Notify) -> Notify:
    write(parcel, FILE, TEXT)
    assert parcel("push", "--publish") == 0, parcel.out + parcel.err
    assert parcel.out == f"{KEY}: created and published\n"
    return parcel


def test_pull_after_push_is_the_same_and_keeps_comments(weekly: Notify, app: App) -> None:
    before = weekly.files()
    assert (weekly("diff", "--exit-code", KEY), weekly.out) == (0, "")
    assert (weekly("pull", KEY), weekly.out, weekly.files()) == (0, "", before)
    body = {**WEEKLY, "period_seconds": 604_800, "min_gap_seconds": 60}
    assert app.put("/limits/weekly", body).status_code == 200
    assert (weekly("pull", KEY), weekly.out) == (0, f"{KEY}: pulled\n")
    assert (weekly.types.parent / FILE).read_text() == TEXT + "min_gap_seconds: 60\n"


def test_change_on_the_server_is_a_conflict_with_three_sides(weekly: Notify, app: App) -> None:
    app.put("/limits/weekly", {**WEEKLY, "max": 9, "period_seconds": 604_800})
    write(weekly, FILE, TEXT.replace("max: 3", "max: 1"))
    assert weekly("push", "--publish") == 3
    assert f"--- pulled/{FILE}\n+++ server/{FILE}\n" in weekly.out
    assert f"--- pulled/{FILE}\n+++ files/{FILE}\n" in weekly.out
    assert app.get("/limits/weekly").json()["max"] == 9
    assert weekly("push", "--publish", "--force") == 0
    assert app.get("/limits/weekly").json()["max"] == 1


def test_limit_that_the_files_lost_is_pruned(weekly: Notify) -> None:
    (weekly.types.parent / FILE).unlink()
    assert weekly("push", "--publish", "--prune", "--yes") == 0, weekly.out + weekly.err
    assert weekly.out == f"{KEY}: removed\n"
    assert limits.read_limits() == []


def test_what_the_service_refuses_is_named_by_its_file(weekly: Notify) -> None:
    write(weekly, FILE, TEXT.replace("parcel_lost", "nope").replace("max: 3", "max: 0"))
    assert weekly("push", "--publish") == 1
    assert f"{KEY}: weekly.yaml: max: " in weekly.out
    write(weekly, FILE, TEXT.replace("parcel_lost", "nope"))
    assert weekly("lint", "--server", "--json") == 1
    (found,) = json.loads(weekly.out)
    assert (found["limit"], found["what"]) == ("weekly", "unknown_type")
    assert found["place"].endswith(f"{FILE}:3")


def test_key_without_the_scope_says_which_it_needs(
    weekly: Notify, tmp_path: Path, app: App
) -> None:
    weak = Notify(tmp_path, new_app("weak", Scope.TEMPLATES_WRITE))
    assert weak("diff", "--exit-code") == 0
    write(weekly, FILE, TEXT.replace("max: 3", "max: 1"))
    assert weak("diff", "--exit-code") == 1
    assert weak("push", "--publish") == 2
    assert "limits:write" in weak.err
    assert app.get("/limits/weekly").json()["max"] == 3
