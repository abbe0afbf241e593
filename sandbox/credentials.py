"""The key pair that signs SendGrid's webhooks, made on first use and kept in the data folder."""

import base64
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from . import credentials
from .credentials import UnreadableKeyError

# ======== sandbox/keys.py

WEBHOOK_PRIVATE_KEY_FILE = "webhook_private_key.pem"
WEBHOOK_PUBLIC_KEY_FILE = "webhook_public_key.txt"


class UnreadableKeyError(ValueError):
    """The stored private key is not one. The message says what to do."""


def ensure_webhook_key(data: Path) -> str:
    """Return the public key of this data folder, as SendGrid shows it; makes the pair if needed."""
    private = load_webhook_key(data)
    public = public_key_text(private)
    stored = data / WEBHOOK_PUBLIC_KEY_FILE
    if not stored.exists() or stored.read_text().strip() != public:
        stored.write_text(public + "\n")
    return public


def load_webhook_key(data: Path) -> ec.EllipticCurvePrivateKey:
    """Return the private key of this data folder; makes one if there is none."""
    path = data / WEBHOOK_PRIVATE_KEY_FILE
    if not path.exists():
        _create_webhook_key(path)
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise UnreadableKeyError(
            f"{path} is not a private key: delete it to get a new one."
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise UnreadableKeyError(f"{path} is not a P-256 key: delete it to get a new one.")
    return key


def public_key_text(private: ec.EllipticCurvePrivateKey) -> str:
    """Return the public key as base64 of its DER SubjectPublicKeyInfo."""
    der = private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(der).decode()


def sign_webhook(private: ec.EllipticCurvePrivateKey, *, timestamp: str, body: bytes) -> str:
    """Return the base64 DER signature over a timestamp and a body."""
    return base64.b64encode(
        private.sign(timestamp.encode() + body, ec.ECDSA(hashes.SHA256()))
    ).decode()


def _create_webhook_key(path: Path) -> None:
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    credentials.create_secret_file(path, pem)


# ======== sandbox/google_account.py

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
        credentials.replace_secret_file(account.path, _encode_service_account(stored))
    return account.path


def load_service_account(data: Path) -> ServiceAccount:
    """Return the account of this data folder, made if there is none; raises UnreadableKey."""
    path = data / SERVICE_ACCOUNT_FILE
    if not path.exists():
        credentials.create_secret_file(path, _encode_service_account(_new_service_account()))
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


# ======== sandbox/meta_account.py

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
        credentials.create_secret_file(
            path, msgspec.json.format(msgspec.json.encode(account)) + b"\n"
        )
    try:
        return msgspec.json.decode(path.read_bytes(), type=MetaAccount)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableKeyError(
            f"{path} is no WhatsApp account: delete it to get a new one."
        ) from error


# ======== sandbox/secret_files.py


def create_secret_file(path: Path, content: bytes) -> None:
    """Write a file unless there is one already: of two processes the quicker wins."""
    draft = _write_draft(path, content)
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()


def replace_secret_file(path: Path, content: bytes) -> None:
    """Write a file in place of the one there is; nobody ever reads half of it."""
    _write_draft(path, content).replace(path)


def _write_draft(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(f".{os.getpid()}")
    with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
    return draft
