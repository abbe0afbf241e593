"""A check of the account without a mail."""

from http import HTTPStatus
from urllib.parse import quote

from domain.mailboxes import parse_mailbox
from domain.time import utc_now
from notifyproject.platform import event_loop
from notifyproject.settings.variables import Environment

from .. import http, http_client
from ..aws_errors import read_error
from ..aws_signing import Credentials, Signer
from ..http import Request
from ..setup_check import TIMEOUT, RejectedError, explained
from .provider import SERVICE, default_url
from .variables import Settings


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Read the account, the sender's identity, and the configuration set. Raises CheckError."""
    values = Settings.of(environment)

    def read(path: str) -> http.Response:
        credentials = Credentials(
            access_key_id=values.SES_ACCESS_KEY_ID,
            secret_access_key=values.SES_SECRET_ACCESS_KEY,
            session_token=values.SES_SESSION_TOKEN,
        )
        signer = Signer(credentials=credentials, region=values.SES_REGION, service=SERVICE)
        base_url = (values.SES_URL or default_url(values.SES_REGION)).rstrip("/")
        request = Request(url=f"{base_url}/v2/email/{path}", headers={}, body=None, timeout=timeout)
        with explained("Amazon SES"):
            return event_loop.run(http_client.send(signer.sign(request, now=utc_now())))

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
