"""Colours and progress of ``notify``: for a terminal alone."""

import pytest
from notifyproject_client.cli import command

from tests.clients.cli.test_command import Notify, notify, parcel

__all__ = ["notify", "parcel"]
RED, GREEN, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"


@pytest.fixture
def changed(parcel: Notify) -> Notify:
    parcel.write("parcel_lost", "body.txt", "We are very sorry.\n")
    parcel.is_terminal = True
    return parcel


def test_difference_on_a_terminal_has_colours(changed: Notify) -> None:
    assert changed("diff") == 0
    assert f"{RED}-We are sorry.{PLAIN}\n{GREEN}+We are very sorry.{PLAIN}\n" in changed.out


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_environment_forbids_colours(changed: Notify, environment: dict[str, str]) -> None:
    assert changed("diff", **environment) == 0
    assert "-We are sorry.\n+We are very sorry.\n" in changed.out
    assert "\x1b" not in changed.out


def test_empty_variable_forbids_none(changed: Notify) -> None:
    assert changed("diff", NO_COLOR="") == 0
    assert RED in changed.out


def test_progress_on_a_terminal_is_taken_away(changed: Notify) -> None:
    assert changed("push", "--publish") == 0
    assert "Storing 1 at http://testserver …" in changed.err
    assert changed.err.endswith("\r\x1b[K")


def test_other_programs_get_neither(changed: Notify) -> None:
    assert changed("diff", "--json") == 0
    assert "\x1b" not in changed.out
    changed.is_terminal = False
    assert changed("diff") == 0
    assert "\x1b" not in changed.out + changed.err
    assert "Reading" not in changed.err


def test_error_follows_on_a_line_of_its_own(changed: Notify) -> None:
    assert changed("pull", "nope") == command.INVALID_USE
    assert changed.err.endswith("\r\x1b[KThere is no type nope.\n")
