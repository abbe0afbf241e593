"""Encrypts what suffices to push to a browser: its endpoint and keys. Reads no database."""

import msgspec

from domain.web_push import SealedSubscription, Subscription
from notifyproject.platform.encryption import DecryptionError, decrypt, encrypt

from . import tokens


class _Secrets(msgspec.Struct, frozen=True, array_like=True):
    endpoint: str
    p256dh: bytes
    auth: bytes


def seal(subscription: Subscription) -> str:
    """Return the endpoint and keys of a subscription, encrypted. Raises NoEncryptionKeyError."""
    device_id = tokens.device_id(subscription.endpoint)
    secrets = _Secrets(subscription.endpoint, subscription.p256dh, subscription.auth)
    return encrypt(msgspec.msgpack.encode(secrets), associated_data=associated_data(device_id))


def unseal(subscription: SealedSubscription) -> Subscription:
    """Return a subscription with its endpoint and keys. Raises DecryptionError."""
    plain = decrypt(subscription.secrets, associated_data=associated_data(subscription.device_id))
    try:
        secrets = msgspec.msgpack.decode(plain, type=_Secrets)
    except msgspec.MsgspecError as error:
        raise DecryptionError("unreadable") from error
    return Subscription(
        endpoint=secrets.endpoint,
        host=subscription.host,
        p256dh=secrets.p256dh,
        auth=secrets.auth,
        fingerprint=subscription.fingerprint,
    )


def associated_data(device_id: str) -> str:
    """Return what binds the encrypted values to their device."""
    return f"subscription:{device_id}"
