"""Credentials of the sandbox, generated on first use and stored in the data folder."""

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

WEBHOOK_PRIVATE_KEY_FILE = "webhook_private_key.pem"
WEBHOOK_PUBLIC_KEY_FILE = "webhook_public_key.txt"
SERVICE_ACCOUNT_FILE = "fcm_service_account.json"
FCM_PROJECT_ID = "notify-sandbox"
SERVICE_ACCOUNT_EMAIL = f"sandbox@{FCM_PROJECT_ID}.iam.gserviceaccount.com"
TOKEN_PATH = "/token"
BROWSERS_FILE = "browsers.key"
MAIL_ACCOUNTS_FILE = "mail_accounts.json"
WHATSAPP_ACCOUNT_FILE = "whatsapp_account.json"
PHONE_NUMBER_ID = "100000000000001"
BUSINESS_ACCOUNT_ID = "200000000000002"
WHATSAPP_ACCESS_TOKEN = "EAAsandbox"
TWILIO_ACCOUNT_FILE = "twilio_account.json"
TWILIO_ACCOUNT_SID = "AC00000000000000000000000000000001"
TWILIO_API_KEY = "SK00000000000000000000000000000001"
TWILIO_API_SECRET = "sandbox"
TWILIO_MESSAGING_SERVICE_SID = "MG00000000000000000000000000000001"
SNS_CERTIFICATE_FILE = "sns_certificate.pem"
AWS_ACCESS_KEY_ID = "AKIASANDBOX00000001"
AWS_SECRET_ACCESS_KEY = "sandbox"
AWS_REGION = "eu-west-1"
AWS_TOPIC = f"arn:aws:sns:{AWS_REGION}:000000000000:notify"
AWS_CONFIGURATION_SET = "notify"
AWS_POOL = f"pool-{'0' * 31}1"
AWS_NUMBER = "+15005550007"
AWS_PROTECT_CONFIGURATION = f"protect-{'0' * 31}1"
CERTIFICATE_LIFETIME = timedelta(days=3650)
T = TypeVar("T")


class UnreadableKeyError(ValueError):
    """A stored credential is invalid. The message says how to replace it."""


def _load_or_create(
    path: Path, create: Callable[[], bytes], parse: Callable[[bytes], T], *, what: str
) -> T:
    """Parse a file, which is created if missing. Raises UnreadableKeyError."""
    if not path.exists():
        draft = _write_draft(path, create())
        # If two processes create the file at once, both use the file of the first.
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    try:
        return parse(path.read_bytes())
    except (ValueError, TypeError, msgspec.DecodeError) as error:
        raise UnreadableKeyError(f"{path} is no {what}: delete it to get a new one.") from error


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _json(value: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def ensure_webhook_key(data: Path) -> str:
    """Return the public key of SendGrid's webhooks as base64; creates a missing key pair."""
    public = public_key_text(load_webhook_key(data))
    stored = data / WEBHOOK_PUBLIC_KEY_FILE
    if not stored.exists() or stored.read_text().strip() != public:
        stored.write_text(public + "\n")
    return public


def load_webhook_key(data: Path) -> ec.EllipticCurvePrivateKey:
    """Load or create the private key of SendGrid's webhooks. Raises UnreadableKeyError."""
    return _load_or_create(
        data / WEBHOOK_PRIVATE_KEY_FILE,
        lambda: _pem(ec.generate_private_key(ec.SECP256R1())),
        _parse_webhook_key,
        what="P-256 private key",
    )


def _parse_webhook_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise ValueError("not a P-256 key")
    return key


def public_key_text(private: ec.EllipticCurvePrivateKey) -> str:
    """Return the public key as base64 of DER SubjectPublicKeyInfo, as SendGrid shows it."""
    der = private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(der).decode()


class ServiceAccountFile(msgspec.Struct, kw_only=True):
    """The JSON key file of a Google service account."""

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
    """A service account and its private key."""

    file: ServiceAccountFile
    private_key: rsa.RSAPrivateKey


def ensure_service_account(data: Path, *, url: str) -> Path:
    """Return the path of the service account's key file, with the sandbox's ``token_uri``.

    Creates a missing account. Raises UnreadableKeyError.
    """
    path, file = data / SERVICE_ACCOUNT_FILE, load_service_account(data).file
    token_uri = url.rstrip("/") + TOKEN_PATH
    if file.token_uri != token_uri:
        replace_secret_file(path, _json(msgspec.structs.replace(file, token_uri=token_uri)))
    return path


def load_service_account(data: Path) -> ServiceAccount:
    """Load or create the account. Raises UnreadableKeyError."""
    return _load_or_create(
        data / SERVICE_ACCOUNT_FILE,
        _new_service_account,
        _parse_service_account,
        what="service account",
    )


def _parse_service_account(content: bytes) -> ServiceAccount:
    file = msgspec.json.decode(content, type=ServiceAccountFile)
    key = serialization.load_pem_private_key(file.private_key.encode(), password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError("not an RSA key")
    return ServiceAccount(file=file, private_key=key)


def _new_service_account() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    account = ServiceAccountFile(
        project_id=FCM_PROJECT_ID,
        private_key_id=secrets.token_hex(20),
        private_key=_pem(key).decode(),
        client_email=SERVICE_ACCOUNT_EMAIL,
        client_id="100000000000000000001",
        token_uri="",
    )
    return _json(account)


class MetaAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A WhatsApp Cloud API account: IDs, access token, and webhook secrets."""

    phone_number_id: str = PHONE_NUMBER_ID
    business_account_id: str = BUSINESS_ACCOUNT_ID
    display_phone_number: str = "15550100000"
    """The sender's number, which belongs to nobody."""
    access_token: str = WHATSAPP_ACCESS_TOKEN
    app_secret: str
    verify_token: str

    def sign(self, body: bytes, *, algorithm: str) -> str:
        """Return the value of a webhook's signature header: the algorithm and the HMAC."""
        return f"{algorithm}={hmac.digest(self.app_secret.encode(), body, algorithm).hex()}"


def ensure_whatsapp_account(data: Path) -> MetaAccount:
    """Load or create the account. Raises UnreadableKeyError."""
    return _load_or_create(
        data / WHATSAPP_ACCOUNT_FILE,
        lambda: _json(
            MetaAccount(app_secret=secrets.token_hex(16), verify_token=secrets.token_urlsafe(16))
        ),
        lambda content: msgspec.json.decode(content, type=MetaAccount),
        what="WhatsApp account",
    )


class TwilioAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A Twilio account: SIDs, an API key, a sender, and the auth token, which signs webhooks."""

    account_sid: str = TWILIO_ACCOUNT_SID
    auth_token: str
    api_key: str = TWILIO_API_KEY
    api_secret: str = TWILIO_API_SECRET
    messaging_service_sid: str = TWILIO_MESSAGING_SERVICE_SID
    number: str = "+15005550006"
    """The service's number, which belongs to nobody."""


def ensure_twilio_account(data: Path) -> TwilioAccount:
    """Load or create the account. Raises UnreadableKeyError."""
    return _load_or_create(
        data / TWILIO_ACCOUNT_FILE,
        lambda: _json(TwilioAccount(auth_token=secrets.token_hex(16))),
        lambda content: msgspec.json.decode(content, type=TwilioAccount),
        what="Twilio account",
    )


class MailAccounts(msgspec.Struct, frozen=True, kw_only=True):
    """What shows that webhooks of providers of email are theirs."""

    webhook_secret: str
    """The password of their URLs."""
    mailgun_signing_key: str
    resend_signing_secret: str


def ensure_mail_accounts(data: Path) -> MailAccounts:
    """Load or create the secrets. Raises UnreadableKeyError."""
    return _load_or_create(
        data / MAIL_ACCOUNTS_FILE,
        lambda: _json(
            MailAccounts(
                webhook_secret=secrets.token_hex(16),
                mailgun_signing_key=secrets.token_hex(16),
                resend_signing_secret=f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}",
            )
        ),
        lambda content: msgspec.json.decode(content, type=MailAccounts),
        what="accounts of email",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsAccount:
    """An account of AWS in one region, with a topic that gets all events."""

    access_key_id: str = AWS_ACCESS_KEY_ID
    secret_access_key: str = AWS_SECRET_ACCESS_KEY
    region: str = AWS_REGION
    topic: str = AWS_TOPIC
    configuration_set: str = AWS_CONFIGURATION_SET
    pool: str = AWS_POOL
    number: str = AWS_NUMBER
    """The pool's number, which belongs to nobody."""
    protect_configuration: str = AWS_PROTECT_CONFIGURATION


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningIdentity:
    """A private key, and the certificate of its public key as PEM."""

    private_key: rsa.RSAPrivateKey
    certificate: bytes

    @property
    def fingerprint(self) -> str:
        """32 hex digits that stand for the certificate."""
        return hashlib.sha256(self.certificate).hexdigest()[:32]


def ensure_sns_identity(data: Path) -> SigningIdentity:
    """Load or create the certificate of SNS. Raises UnreadableKeyError."""
    return _load_or_create(
        data / SNS_CERTIFICATE_FILE, _new_identity, _parse_identity, what="certificate with its key"
    )


def _new_identity() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + CERTIFICATE_LIFETIME)
        .sign(key, hashes.SHA256())
    )
    return _pem(key) + certificate.public_bytes(serialization.Encoding.PEM)


def _parse_identity(content: bytes) -> SigningIdentity:
    key = serialization.load_pem_private_key(content, password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError("not an RSA key")
    certificate = x509.load_pem_x509_certificate(content)
    return SigningIdentity(
        private_key=key, certificate=certificate.public_bytes(serialization.Encoding.PEM)
    )


def ensure_browsers_secret(data: Path) -> bytes:
    """Load or create the secret from which the browsers' keys follow. Raises UnreadableKeyError."""
    return _load_or_create(
        data / BROWSERS_FILE,
        lambda: secrets.token_hex(32).encode(),
        lambda content: bytes.fromhex(content.decode()),
        what="secret of browsers",
    )


def replace_secret_file(path: Path, content: bytes) -> None:
    """Replace a file atomically; only its owner may read it."""
    _write_draft(path, content).replace(path)


def _write_draft(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(f".{os.getpid()}")
    with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
    return draft
