"""All who keep to the contract."""

import pytest

from .mail import MAIL_SERVER, SENDGRID
from .push_and_chat import CLOUD_API, FIREBASE, INBOX

SUBJECTS = (SENDGRID, MAIL_SERVER, FIREBASE, CLOUD_API, INBOX)
EVERY = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
