"""Migrations that change what is stored."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

pytestmark = pytest.mark.usefixtures("db")

OLD, NEW = "Can see addresses whole", "Can see unmasked addresses"


def migrate(name: str) -> None:
    MigrationExecutor(connection).migrate([("notifications", name)])


def test_the_stored_permission_for_addresses_gets_its_new_name() -> None:
    stored = Permission.objects.filter(codename="view_addresses")
    assert [permission.name for permission in stored] == [NEW]
    migrate("0003_templates")
    try:
        stored.update(name=OLD)
        others = set(Permission.objects.exclude(codename="view_addresses").values_list("name"))
    finally:
        migrate("0004_unmasked_addresses")
    assert [permission.name for permission in stored.all()] == [NEW]
    left = set(Permission.objects.exclude(codename="view_addresses").values_list("name"))
    assert left == others
