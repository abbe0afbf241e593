"""What apps ask for: a notification on each channel, and a person's phone."""

from typing import Any

Body = dict[str, Any]


def mail(number: int, *, to: str = "user", **fields: Any) -> Body:
    """Return a mail to somebody of their own; ``to`` is a word that the sandbox knows, or none."""
    return {
        "type": "payment_confirmed",
        "user_id": f"user-{number}",
        "recipient": {"email": f"{to}+{number}@example.com"},
        "channels": ["email"],
        "data": {"order_id": number, "video_title": "Sunrise", "amount": "49.90"},
        **fields,
    }


def same_mail(number: int, **fields: Any) -> Body:
    """Return a mail that says the same as others and may go with them in one request."""
    content = {"subject": "News", "body": "The same for everybody."}
    return {**mail(number), "type": "transactional", "content": content, "data": {}, **fields}


def push(number: int, *, user_id: str, **fields: Any) -> Body:
    """Return a push to the devices of somebody."""
    return {
        "type": "order_shipped",
        "user_id": user_id,
        "channels": ["push"],
        "data": {"order": str(number)},
        **fields,
    }


def phone(*, user_id: str, token: str = "delivered-phone") -> Body:
    """Return somebody's phone; what comes of a push to it is in its token's name."""
    return {"user_id": user_id, "device_token": token, "platform": "android"}


def broadcast(*user_ids: str) -> Body:
    """Return a push that says the same to several people."""
    return {
        "type": "alert",
        "audience": {"user_ids": list(user_ids)},
        "channels": ["push"],
        "content": {"subject": "News", "body": "The same for everybody."},
    }


def whatsapp(number: int, *, phone: str, **fields: Any) -> Body:
    """Return a WhatsApp message; who gets it has to have written to us before."""
    return {
        "type": "order_shipped",
        "user_id": f"user-{number}",
        "recipient": {"phone": phone},
        "channels": ["whatsapp"],
        "data": {"order": str(number)},
        **fields,
    }


def in_app(number: int, **fields: Any) -> Body:
    """Return something for the inbox."""
    return {
        "type": "order_shipped",
        "user_id": f"user-{number}",
        "channels": ["in_app"],
        "data": {"order": str(number)},
        **fields,
    }
