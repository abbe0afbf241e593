"""All kinds under test."""

import pytest

from tests.providers.email_apis.kinds import KindCase
from tests.providers.email_apis.postmark import POSTMARK

KINDS: tuple[KindCase, ...] = (POSTMARK,)
EVERY = pytest.mark.parametrize("case", KINDS, ids=lambda case: case.name)
