"""The push services of the sandbox."""

from collections.abc import Iterator

import pytest

from sandbox.assembly import Sandbox
from tests.support.providers.webpush import PushServices


@pytest.fixture
def services(_sandbox: Sandbox) -> Iterator[PushServices]:
    services = PushServices(sandbox=_sandbox)
    services.control("POST", "/reset")
    yield services
    services.control("POST", "/reset")
