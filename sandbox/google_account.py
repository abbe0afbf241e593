"""The service account that may send pushes, made on first use and kept in the data folder."""

import secrets
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from . import secret_files
from .keys import UnreadableKey

FILE = "fcm_service_account.json"
PROJECT = "notify-sandbox"
EMAIL = f"sandbox@{PROJECT}.iam.gserviceaccount.com"
SIGN_IN = "/token"
"""The path of the token endpoint."""
BITS = 2048


class _File(msgspec.Struct, kw_only=True):
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


def ensure(data: Path, *, url: str) -> Path:
    """Return the path of the JSON, whose ``token_uri`` is that of a sandbox at ``url``.

    Makes the account if there is none; raises UnreadableKey.
    """
    account = load(data)
    found = _read(account.path)
    wanted = url.rstrip("/") + SIGN_IN
    if found.token_uri != wanted:
        found.token_uri = wanted
        secret_files.replace(account.path, _text(found))
    return account.path


def load(data: Path) -> ServiceAccount:
    """Return the account of this data folder, made if there is none; raises UnreadableKey."""
    path = data / FILE
    if not path.exists():
        secret_files.create(path, _text(_new()))
    found = _read(path)
    try:
        key = serialization.load_pem_private_key(found.private_key.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise _unreadable(path) from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise _unreadable(path)
    return ServiceAccount(
        path=path,
        email=found.client_email,
        project_id=found.project_id,
        key_id=found.private_key_id,
        private_key=key,
    )


def _new() -> _File:
    pem = rsa.generate_private_key(public_exponent=65537, key_size=BITS).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return _File(
        project_id=PROJECT,
        private_key_id=secrets.token_hex(20),
        private_key=pem.decode(),
        client_email=EMAIL,
        client_id="100000000000000000001",
        token_uri="",
    )


def _read(path: Path) -> _File:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable(path) from error


def _text(account: _File) -> bytes:
    return msgspec.json.format(msgspec.json.encode(account), indent=2) + b"\n"


def _unreadable(path: Path) -> UnreadableKey:
    return UnreadableKey(f"{path} is no service account: delete it to get a new one.")
