"""The system check of loopback callbacks."""

from typing import Any

import pytest
from django.core import checks

from callbacks import apps


@pytest.mark.parametrize(("is_on", "ids"), [(True, ["callbacks.E001"]), (False, [])])
def test_loopback_fails_the_deployment_check(is_on: bool, ids: list[str], settings: Any) -> None:
    settings.CALLBACK_LOOPBACK = is_on
    assert [problem.id for problem in apps.check_loopback()] == ids


def test_loopback_check_runs_at_deployment_only() -> None:
    deployed = checks.registry.registry.get_checks(include_deployment_checks=True)
    assert apps.check_loopback in deployed
    assert apps.check_loopback not in checks.registry.registry.get_checks()
