"""Keys of API clients in test mode: they say what they are, and stay that."""

from io import StringIO

import pytest
from bson import ObjectId
from django.core.management import CommandError, call_command
from django.utils import timezone

from access.clients import registry
from access.models import Scope
from tests.support.factories.records import NOON

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture
def client() -> ObjectId:
    """Give a client in test mode."""
    return registry.create_client(
        name="try-out", scopes=[Scope.NOTIFICATIONS_WRITE], is_test=True, now=NOON
    )


def test_its_keys_begin_with_what_they_are_for(client: ObjectId) -> None:
    issued = registry.issue_key(client_id=client, now=NOON)
    assert issued.text.startswith(f"ntf_test_{issued.prefix}_")
    assert registry.KEY.fullmatch(issued.text)
    assert registry.mask_key(issued.prefix, is_test=True) == f"ntf_test_{issued.prefix}…"


def test_a_key_makes_its_bearer_a_client_in_test_mode(client: ObjectId) -> None:
    issued = registry.issue_key(client_id=client, now=NOON)
    found = registry.authenticate(issued.text, now=NOON)
    assert found is not None
    assert (found.id, found.is_test) == (client, True)


def test_a_key_without_its_mark_opens_nothing(client: ObjectId) -> None:
    issued = registry.issue_key(client_id=client, now=NOON)
    assert registry.authenticate(issued.text.replace("test_", "", 1), now=NOON) is None


def test_the_mark_makes_no_other_key_a_key_for_tests() -> None:
    live = registry.create_client(name="shop", scopes=[Scope.NOTIFICATIONS_WRITE], now=NOON)
    issued = registry.issue_key(client_id=live, now=NOON)
    assert registry.authenticate(issued.text.replace("ntf_", "ntf_test_"), now=NOON) is None
    found = registry.authenticate(issued.text, now=NOON)
    assert found is not None
    assert not found.is_test


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("create_api_client", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


def test_the_command_makes_one_and_its_later_keys_are_of_the_same_mode() -> None:
    assert run("try-out", "--test").startswith("ntf_test_")
    assert run("try-out", "--new-key").startswith("ntf_test_")
    assert not run("shop").startswith("ntf_test_")


def test_no_client_changes_its_mode() -> None:
    run("shop")
    with pytest.raises(CommandError, match="no client changes its mode"):
        run("shop", "--new-key", "--test")


def test_replacing_keys_creates_the_client_and_later_revokes_its_other_keys() -> None:
    first = run("shop", "--replace-keys", "--scopes", "all")
    second = run("shop", "--replace-keys")
    authenticated = registry.authenticate(second, now=timezone.now())
    assert authenticated is not None
    assert authenticated.scopes == frozenset(Scope)
    assert registry.authenticate(first, now=timezone.now()) is None
