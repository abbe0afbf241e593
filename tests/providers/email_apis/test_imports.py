"""The library of these providers is optional, and loaded only when one of them is used."""

import json
import os
import subprocess
import sys

from tests.providers.email_apis.cases import KINDS
from tests.support.source import ROOT
from tests.support.waiting import LIMIT

SCRIPT = """
import json
import sys

import django

django.setup()

from django.urls import get_resolver

from domain.channels import Channel
from providers.registry import providers_for

get_resolver().url_patterns
names = [provider.name for provider in providers_for(Channel("email"))]
print(json.dumps([names, "anymail" in sys.modules]))
"""


def loaded(**variables: str) -> list[object]:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "notifyproject.settings.test",
        **variables,
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    return json.loads(done.stdout)


def test_process_without_such_a_provider_loads_no_library() -> None:
    assert loaded(EMAIL_PROVIDER="smtp") == [["smtp"], False]


VARIABLES = {
    "postmark": {"POSTMARK_SERVER_TOKEN": "a-token-of-tests"},
    "resend": {"RESEND_API_KEY": "a-key-of-tests"},
    "mailgun": {"MAILGUN_API_KEY": "a-key-of-tests"},
    "brevo": {"BREVO_API_KEY": "a-key-of-tests"},
    "mailjet": {"MAILJET_API_KEY": "a-key-of-tests", "MAILJET_SECRET_KEY": "a-key-of-tests"},
    "sparkpost": {"SPARKPOST_API_KEY": "a-key-of-tests"},
    "mailtrap": {"MAILTRAP_API_TOKEN": "a-key-of-tests"},
}
"""What turns each on."""


def test_process_with_one_loads_it_before_the_first_mail() -> None:
    assert list(VARIABLES) == [case.name for case in KINDS]
    every = {name: value for values in VARIABLES.values() for name, value in values.items()}
    assert loaded(EMAIL_PROVIDER=",".join(VARIABLES), **every) == [list(VARIABLES), True]
