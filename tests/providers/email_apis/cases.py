"""All kinds under test."""

import pytest

from tests.providers.email_apis.kinds import KindCase
from tests.providers.email_apis.mailgun import MAILGUN
from tests.providers.email_apis.postmark import POSTMARK
from tests.providers.email_apis.resend import RESEND

KINDS: tuple[KindCase, ...] = (POSTMARK, RESEND, MAILGUN)
EVERY = pytest.mark.parametrize("case", KINDS, ids=lambda case: case.name)
