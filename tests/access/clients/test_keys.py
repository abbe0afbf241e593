"""API keys: issuing, authentication, revocation, and test mode."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from bson import ObjectId
from django.core.management import CommandError, call_command
from django.utils import timezone
from pymongo.errors import DuplicateKeyError

from access.clients import registry
from access.clients.registry import KEY, MAX_ACTIVE_KEYS, USE_RECORD_INTERVAL, TooManyKeysError
from access.models import APIClient, Scope
from notifyproject.db.collections import collection
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")
READ, WRITE, ADMIN = Scope.NOTIFICATIONS_READ, Scope.NOTIFICATIONS_WRITE, Scope.ADMIN
DAY = timedelta(days=1)


def client(name: str = "shop", *scopes: Scope) -> ObjectId:
    return registry.create_client(name=name, scopes=list(scopes or (READ, WRITE)), now=NOON)


def issue(client_id: ObjectId, **fields: Any) -> registry.IssuedKey:
    return registry.issue_key(client_id=client_id, **({"now": NOON} | fields))


def is_accepted(key: registry.IssuedKey | str, now: Any = NOON) -> bool:
    return registry.authenticate(key if isinstance(key, str) else key.text, now=now) is not None


def stored(client_id: ObjectId) -> dict[str, Any]:
    document = collection("api_clients").find_one({"_id": client_id})
    assert document is not None
    return document


def test_key_authenticates_its_client() -> None:
    client_id = client("shop", READ)
    found = registry.authenticate(issue(client_id).text, now=NOON)
    assert found == registry.Client(id=client_id, name="shop", scopes=frozenset({READ}))


def test_keys_are_unique_and_well_formed() -> None:
    issued = {issue(client(f"client-{n}")).text for n in range(50)}
    assert len(issued) == 50
    assert all(KEY.fullmatch(text) for text in issued)


def test_key_secret_is_not_stored() -> None:
    client_id = client()
    issued = issue(client_id)
    secret = issued.text[len("ntf_") + len(issued.prefix) + 1 :]
    assert secret not in str(stored(client_id))
    assert issued.prefix in str(stored(client_id))


@pytest.mark.parametrize(
    ("scopes", "scope", "is_allowed"),
    [
        ([READ], READ, True),
        ([READ], WRITE, False),
        ([ADMIN], WRITE, True),
        ([ADMIN], ADMIN, True),
        ([READ, WRITE], ADMIN, False),
    ],
)
def test_client_has_only_its_scopes(scopes: list[Scope], scope: Scope, is_allowed: bool) -> None:
    found = registry.authenticate(issue(client("shop", *scopes)).text, now=NOON)
    assert found.has_scope(scope) is is_allowed


def test_wrong_secret_is_rejected() -> None:
    first, other = issue(client()), issue(client("other"))
    forged = f"ntf_{first.prefix}_{other.text[len('ntf_') + 11 :]}"
    assert KEY.fullmatch(forged)
    assert not is_accepted(forged)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: text[:-1],
        lambda text: text + "x",
        lambda text: text.upper(),
        lambda text: " " + text,
        lambda text: text + "\n",
        lambda text: text.replace("ntf_", "NTF_"),
        lambda text: text.replace("ntf_", ""),
        lambda text: f"ntf_aaaaaaaaaa_{text[-43:]}",
        lambda text: text[:-1] + "\u00e9",
        lambda text: text[:4] + "$ne" + text[7:],
        lambda text: "ntf_" + "a" * 100_000,
    ],
)
def test_malformed_key_is_rejected(change: Any) -> None:
    assert not is_accepted(change(issue(client()).text))


def test_disabled_client_is_rejected() -> None:
    client_id = client()
    issued = issue(client_id)
    APIClient.objects.filter(pk=client_id).update(is_active=False)
    assert not is_accepted(issued)


def test_client_has_two_keys_during_rotation() -> None:
    client_id = client()
    old, new = issue(client_id), issue(client_id)
    assert [is_accepted(key) for key in (old, new)] == [True, True]
    with pytest.raises(TooManyKeysError):
        issue(client_id)
    registry.revoke_key(prefix=old.prefix, now=NOON)
    third = issue(client_id)
    assert [is_accepted(key) for key in (old, new, third)] == [False, True, True]


def test_expired_key_frees_its_place() -> None:
    client_id = client()
    for _ in range(MAX_ACTIVE_KEYS):
        issue(client_id, lifetime=DAY)
    assert is_accepted(issue(client_id, now=NOON + DAY), now=NOON + DAY)


@pytest.mark.parametrize("number", range(5))
def test_concurrent_issues_keep_the_key_limit(number: int) -> None:
    client_id = client(f"shop-{number}")

    def attempt(_number: int) -> registry.IssuedKey | None:
        try:
            return issue(client_id)
        except TooManyKeysError:
            return None

    with ThreadPoolExecutor(8) as threads:
        issued = [key for key in threads.map(attempt, range(8)) if key]
    assert len(issued) == MAX_ACTIVE_KEYS
    assert all(is_accepted(key) for key in issued)
    assert len(stored(client_id)["keys"]) == MAX_ACTIVE_KEYS


def test_key_is_issued_while_another_is_in_use() -> None:
    client_id = client()
    first = issue(client_id)

    def use(number: int) -> bool:
        return is_accepted(first, now=NOON + number * USE_RECORD_INTERVAL * 2)

    with ThreadPoolExecutor(4) as threads:
        uses = threads.map(use, range(1, 60))
        second = issue(client_id)
        assert all(uses)
    assert is_accepted(second)


def test_unknown_client_gets_no_key() -> None:
    with pytest.raises(LookupError):
        issue(ObjectId())


def test_client_name_is_unique() -> None:
    client_id = client("shop")
    with pytest.raises(DuplicateKeyError):
        client("shop")
    assert registry.find_client("shop") == client_id
    assert registry.find_client("nobody") is None


def test_revoked_key_is_rejected() -> None:
    issued = issue(client())
    assert [registry.revoke_key(prefix=issued.prefix, now=NOON) for _ in range(2)] == [True, False]
    assert not is_accepted(issued)
    assert not registry.revoke_key(prefix="nothing", now=NOON)


@pytest.mark.parametrize(
    ("now", "is_open"),
    [(NOON, True), (NOON + DAY - timedelta(milliseconds=1), True), (NOON + DAY, False)],
)
def test_key_expires(now: Any, is_open: bool) -> None:
    assert is_accepted(issue(client(), lifetime=DAY), now=now) is is_open


def test_key_expires_in_a_year_unless_told_otherwise() -> None:
    client_id = client()
    issue(client_id)
    issue(client_id, lifetime=None)
    first, second = stored(client_id)["keys"]
    assert first["expires_at"] == NOON + timedelta(days=365)
    assert "expires_at" not in second


@pytest.mark.parametrize(
    ("lifetimes", "ends_after"),
    [([], None), ([DAY], DAY), ([DAY, 3 * DAY], 3 * DAY), ([DAY, None], None), ([-DAY], None)],
)
def test_access_ends_with_the_last_key(
    lifetimes: list[timedelta | None], ends_after: timedelta | None
) -> None:
    client_id = client()
    for lifetime in lifetimes:
        issue(client_id, lifetime=lifetime)
    ends_at = registry.access_ends_at(stored(client_id)["keys"], now=NOON)
    assert ends_at == (None if ends_after is None else NOON + ends_after)


def test_last_use_is_recorded_once_a_minute() -> None:
    client_id = client()
    issued = issue(client_id)
    uses = [NOON, NOON + USE_RECORD_INTERVAL, NOON + 2 * USE_RECORD_INTERVAL]
    recorded = []
    for now in uses:
        is_accepted(issued, now=now)
        recorded.append(stored(client_id)["keys"][0]["last_used_at"])
    assert recorded == [NOON, NOON, NOON + 2 * USE_RECORD_INTERVAL]


def test_last_use_is_recorded_per_key() -> None:
    client_id = client()
    issue(client_id)
    is_accepted(issue(client_id))
    assert ["last_used_at" in key for key in stored(client_id)["keys"]] == [False, True]


def test_refused_key_records_no_use() -> None:
    client_id = client()
    issued = issue(client_id, lifetime=timedelta(0))
    assert not is_accepted(issued)
    assert "last_used_at" not in stored(client_id)["keys"][0]


def test_known_key_is_checked_without_a_query() -> None:
    issued = issue(client())
    is_accepted(issued)
    with plans("api_clients") as found:
        assert is_accepted(issued)
    assert found == []


@pytest.fixture
def test_client() -> ObjectId:
    return registry.create_client(name="try-out", scopes=[WRITE], is_test=True, now=NOON)


def test_test_key_has_its_prefix(test_client: ObjectId) -> None:
    issued = issue(test_client)
    assert issued.text.startswith(f"ntf_test_{issued.prefix}_")
    assert registry.KEY.fullmatch(issued.text)
    assert registry.mask_key(issued.prefix, is_test=True) == f"ntf_test_{issued.prefix}…"


def test_test_key_authenticates_a_test_client(test_client: ObjectId) -> None:
    issued = issue(test_client)
    found = registry.authenticate(issued.text, now=NOON)
    assert (found.id, found.is_test) == (test_client, True)


def test_test_key_without_its_prefix_is_rejected(test_client: ObjectId) -> None:
    issued = issue(test_client)
    assert not is_accepted(issued.text.replace("test_", "", 1))


def test_test_prefix_on_a_live_key_is_rejected() -> None:
    issued = issue(client())
    assert not is_accepted(issued.text.replace("ntf_", "ntf_test_"))
    found = registry.authenticate(issued.text, now=NOON)
    assert not found.is_test


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("create_api_client", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


def test_command_issues_keys_in_the_clients_mode() -> None:
    assert run("try-out", "--test").startswith("ntf_test_")
    assert run("try-out", "--new-key").startswith("ntf_test_")
    assert not run("shop").startswith("ntf_test_")


@pytest.mark.parametrize(("days", "lifetime"), [([], 365), (["30"], 30), (["never"], None)])
def test_command_sets_the_lifetime(days: list[str], lifetime: int | None) -> None:
    run("shop", *(["--expires-in-days", *days] if days else []))
    (key,) = stored(registry.find_client("shop"))["keys"]
    found = key["expires_at"] - key["created_at"] if "expires_at" in key else None
    assert found == (None if lifetime is None else timedelta(days=lifetime))


@each_case("days", ["0", "-1", "soon", "3651", "\u0663", ""])
def test_command_refuses_another_lifetime(days: str) -> None:
    with pytest.raises(CommandError, match="expected 1 to 3650 days, or never"):
        run("shop", f"--expires-in-days={days}")


def test_client_mode_cannot_change() -> None:
    run("shop")
    with pytest.raises(CommandError, match="can't change its mode"):
        run("shop", "--new-key", "--test")


def test_replacing_keys_creates_the_client_and_revokes_its_other_keys() -> None:
    first = run("shop", "--replace-keys", "--scopes", "all")
    second = run("shop", "--replace-keys")
    authenticated = registry.authenticate(second, now=timezone.now())
    assert authenticated.scopes == frozenset(Scope)
    assert registry.authenticate(first, now=timezone.now()) is None
