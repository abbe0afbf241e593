"""All kinds under test."""

import pytest

from tests.providers.email_apis.brevo import BREVO
from tests.providers.email_apis.kinds import KindCase
from tests.providers.email_apis.mailgun import MAILGUN
from tests.providers.email_apis.mailjet import MAILJET
from tests.providers.email_apis.mailtrap import MAILTRAP
from tests.providers.email_apis.postmark import POSTMARK
from tests.providers.email_apis.resend import RESEND
from tests.providers.email_apis.sparkpost import SPARKPOST

KINDS: tuple[KindCase, ...] = (
    POSTMARK,
    RESEND,
    MAILGUN,
    BREVO,
    MAILJET,
    SPARKPOST,
    MAILTRAP,
)
EVERY = pytest.mark.parametrize("case", KINDS, ids=lambda case: case.name)
