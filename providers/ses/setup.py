"""A check of the account without a mail."""

from http import HTTPStatus
from urllib.parse import quote

from domain.mailboxes import parse_mailbox
from domain.time import utc_now
from notifyproject.settings.variables import Environment

from .. import email_setup, http
from ..aws_responses import read_error
from ..aws_signing import Credentials, Signer
from ..http import Request
from ..setup_check import TIMEOUT, RejectedError, fetch
from .provider import SERVICE, base_url_of
from .variables import Settings


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Check the account, the sender's identity, and the configuration set. Raises CheckError."""
    values = email_setup.values_of(Settings, environment)
    signer = Signer(
        credentials=Credentials.of(values, prefix="SES"), region=values.SES_REGION, service=SERVICE
    )

    def read(path: str) -> http.Response:
        url = f"{base_url_of(values)}/v2/email/{path}"
        request = Request(url=url, headers={}, body=None, timeout=timeout)
        return fetch("Amazon SES", signer.sign(request, now=utc_now()))

    account = read("account")
    if account.status != HTTPStatus.OK:
        raise RejectedError(
            f"Amazon SES responded with {account.status} {read_error(account).name}: check the "
            "key, the region, and the permissions ses:GetAccount, ses:GetEmailIdentity, and "
            "ses:GetConfigurationSet."
        )
    if http.decode_object(account.body).get("SendingEnabled") is not True:
        raise RejectedError("Amazon SES has paused the account's sending.")
    sender = parse_mailbox(environment.EMAIL_FROM)
    identities = map(
        read, (f"identities/{quote(name, safe='')}" for name in (sender.address, sender.domain))
    )
    if not any(map(_is_verified, identities)):
        raise RejectedError(
            f"Amazon SES hasn't verified the sender in {values.SES_REGION}: neither its address "
            "nor its domain."
        )
    name = values.SES_CONFIGURATION_SET
    if name and read(f"configuration-sets/{name}").status != HTTPStatus.OK:
        raise RejectedError(f"Amazon SES has no configuration set {name}.")


def _is_verified(identity: http.Response) -> bool:
    found = http.decode_object(identity.body)
    return identity.status == HTTPStatus.OK and found.get("VerifiedForSendingStatus") is True
