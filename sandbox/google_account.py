"""The service account that may send pushes, made on first use and kept in the data folder."""

import secrets
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from . import secret_files
from .keys import UnreadableKeyError

SERVICE_ACCOUNT_FILE = "fcm_service_account.json"
FCM_PROJECT_ID = "notify-sandbox"
SERVICE_ACCOUNT_EMAIL = f"sandbox@{FCM_PROJECT_ID}.iam.gserviceaccount.com"
TOKEN_PATH = "/token"
"""The path of the token endpoint."""
RSA_KEY_BITS = 2048


class _ServiceAccountFile(msgspec.Struct, kw_only=True):
    """The JSON that Google hands out for a service account."""

    type: str = "service_account"
    project_id: str
    private_key_id: str
    private_key: str
    client_email: str
    client_id: str
    token_uri: str
    universe_domain: str = "googleapis.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """Who may send pushes, and for which project."""

    path: Path
    """Its JSON, for a client to sign in with."""
    email: str
    project_id: str
    key_id: str
    private_key: rsa.RSAPrivateKey

    @property
    def public_key(self) -> rsa.RSAPublicKey:
        """What verifies its assertions."""
        return self.private_key.public_key()


def ensure_service_account(data: Path, *, url: str) -> Path:
    """Return the path of the JSON, whose ``token_uri`` is that of a sandbox at ``url``.

    Makes the account if there is none; raises UnreadableKey.
    """
    account = load_service_account(data)
    stored = _read_service_account(account.path)
    token_uri = url.rstrip("/") + TOKEN_PATH
    if stored.token_uri != token_uri:
        stored.token_uri = token_uri
        secret_files.replace_secret_file(account.path, _encode_service_account(stored))
    return account.path


def load_service_account(data: Path) -> ServiceAccount:
    """Return the account of this data folder, made if there is none; raises UnreadableKey."""
    path = data / SERVICE_ACCOUNT_FILE
    if not path.exists():
        secret_files.create_secret_file(path, _encode_service_account(_new_service_account()))
    found = _read_service_account(path)
    try:
        key = serialization.load_pem_private_key(found.private_key.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise _unreadable_service_account(path) from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise _unreadable_service_account(path)
    return ServiceAccount(
        path=path,
        email=found.client_email,
        project_id=found.project_id,
        key_id=found.private_key_id,
        private_key=key,
    )


def _new_service_account() -> _ServiceAccountFile:
    pem = rsa.generate_private_key(public_exponent=65537, key_size=RSA_KEY_BITS).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return _ServiceAccountFile(
        project_id=FCM_PROJECT_ID,
        private_key_id=secrets.token_hex(20),
        private_key=pem.decode(),
        client_email=SERVICE_ACCOUNT_EMAIL,
        client_id="100000000000000000001",
        token_uri="",
    )


def _read_service_account(path: Path) -> _ServiceAccountFile:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_ServiceAccountFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable_service_account(path) from error


def _encode_service_account(account: _ServiceAccountFile) -> bytes:
    return msgspec.json.format(msgspec.json.encode(account), indent=2) + b"\n"


def _unreadable_service_account(path: Path) -> UnreadableKeyError:
    return UnreadableKeyError(f"{path} is no service account: delete it to get a new one.")
