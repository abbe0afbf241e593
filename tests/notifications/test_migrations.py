"""Migrations that change what is stored."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

pytestmark = pytest.mark.usefixtures("db")

OLD, NEW = "Can see addresses whole", "Can see unmasked addresses"


def migrate(name: str) -> None:
    MigrationExecutor(connection).migrate([("notifications", name)])


def other_names() -> set[tuple[str]]:
    return set(Permission.objects.exclude(codename="view_addresses").order_by().values_list("name"))


def test_the_stored_permission_for_addresses_gets_its_new_name() -> None:
    stored = Permission.objects.filter(codename="view_addresses").order_by()
    assert list(stored.values_list("name", flat=True)) == [NEW]
    migrate("0003_templates")
    try:
        stored.update(name=OLD)
        others = other_names()
    finally:
        migrate("0004_unmasked_addresses")
    assert list(stored.values_list("name", flat=True)) == [NEW]
    assert other_names() == others
