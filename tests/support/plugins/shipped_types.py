"""Fixtures of tests without a database."""

import pytest

from domain.states import Category
from notifications.catalog import retention, types
from tests.support.factories.notifications import SHIPPED


@pytest.fixture
def shipped_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the default types and retention policies without reading them."""
    sensitive = {slug: shipped.sensitive_variables for slug, shipped in SHIPPED.items()}
    snapshot = types._Snapshot(
        SHIPPED,
        versions={},
        digested=frozenset(),
        sensitive_variables=sensitive,
        locked=frozenset(slug for slug, shipped in SHIPPED.items() if shipped.is_locked),
    )
    policies = {category: retention._parse_policy(category, None) for category in Category}
    monkeypatch.setattr(types._snapshot_cache, "get", lambda: snapshot)
    monkeypatch.setattr(retention._policies, "get", lambda: policies)
