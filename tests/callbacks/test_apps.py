"""A server does not call itself for anybody."""

from typing import Any

import pytest
from django.core import checks

from callbacks import apps


@pytest.mark.parametrize(("is_on", "ids"), [(True, ["callbacks.E001"]), (False, [])])
def test_to_be_called_on_this_machine_is_for_one_machine(
    is_on: bool, ids: list[str], settings: Any
) -> None:
    settings.CALLBACK_LOOPBACK = is_on
    assert [problem.id for problem in apps.check_loopback()] == ids


def test_it_is_looked_at_where_a_server_is_deployed() -> None:
    deployed = checks.registry.registry.get_checks(include_deployment_checks=True)
    assert apps.check_loopback in deployed
    assert apps.check_loopback not in checks.registry.registry.get_checks()
