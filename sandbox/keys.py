"""The key pair that signs SendGrid's webhooks, made on first use and kept in the data folder."""

import base64
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from . import secret_files

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
    secret_files.create_secret_file(path, pem)
