"""All who keep to the contract."""

import pytest

from tests.providers.contract.mail import MAIL_SERVER, SENDGRID
from tests.providers.contract.push_whatsapp_inbox import CLOUD_API, FIREBASE, INBOX

SUBJECTS = (SENDGRID, MAIL_SERVER, FIREBASE, CLOUD_API, INBOX)
EVERY = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
