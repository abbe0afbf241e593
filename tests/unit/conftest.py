"""What the tests of pure modules share. None of them has a database."""

import hypothesis
import pytest

from notifications import retention, types
from notifications.states import Category

from .building import SHIPPED

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("notifyproject", deadline=None)
hypothesis.settings.load_profile("notifyproject")


@pytest.fixture
def shipped_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the shipped types, and no days of a category's own, as if they had been read."""
    policies = {category: retention._policy(category, {}) for category in Category}
    monkeypatch.setattr(types._registered, "get", lambda: types._Snapshot(SHIPPED))
    monkeypatch.setattr(retention._policies, "get", lambda: policies)
