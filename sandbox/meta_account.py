"""The WhatsApp account: ids and secrets, made on first use and kept in the data folder."""

import hmac
import secrets
from pathlib import Path

import msgspec

from . import secret_files
from .keys import UnreadableKeyError

WHATSAPP_ACCOUNT_FILE = "whatsapp_account.json"
PHONE_NUMBER_ID = "100000000000001"
BUSINESS_ACCOUNT_ID = "200000000000002"
PHONE_NUMBER = "15550100000"
WHATSAPP_ACCESS_TOKEN = "EAAsandbox"


class MetaAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What a client of the Cloud API must know."""

    phone_number_id: str = PHONE_NUMBER_ID
    """The sender, as it stands in the path of a request."""
    business_account_id: str = BUSINESS_ACCOUNT_ID
    """The owner of the templates."""
    display_phone_number: str = PHONE_NUMBER
    """The sender's number; nobody has it."""
    access_token: str = WHATSAPP_ACCESS_TOKEN
    app_secret: str
    """Signs the webhooks."""
    verify_token: str
    """What the receiver of the webhooks is asked for before it gets any."""

    def sign(self, body: bytes, *, algorithm: str) -> str:
        """Return the signature over a body, as its header has it."""
        return f"{algorithm}={hmac.digest(self.app_secret.encode(), body, algorithm).hex()}"


def ensure_whatsapp_account(data: Path) -> MetaAccount:
    """Return the account of this data folder, made if there is none; raises UnreadableKey."""
    path = data / WHATSAPP_ACCOUNT_FILE
    if not path.exists():
        account = MetaAccount(
            app_secret=secrets.token_hex(16), verify_token=secrets.token_urlsafe(16)
        )
        secret_files.create_secret_file(
            path, msgspec.json.format(msgspec.json.encode(account)) + b"\n"
        )
    try:
        return msgspec.json.decode(path.read_bytes(), type=MetaAccount)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableKeyError(
            f"{path} is no WhatsApp account: delete it to get a new one."
        ) from error
