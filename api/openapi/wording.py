"""What stands for a field in the examples of the API's description, by the field's name.

A word for one structure alone is named with it. What a schema says itself needs no word: an
example, a default, a vocabulary, a time. Of a request, an optional field is in the example only if
it has a word with the structure's name.
"""

from collections.abc import Mapping
from typing import Any

NOTIFICATION = "6745e3f09b1d4c2a7f3e8b51"


DELIVERY = f"evt_{NOTIFICATION}_email_delivered_1796115601250"


DEVICE = "9f2c" * 16


MOMENT = "2026-12-01T09:00:00Z"


PAID = {"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}


SPRING = {"subject": "Spring", "body": "It is spring."}


IDS: Mapping[str, Any] = {
    "id": NOTIFICATION,
    "notification_id": NOTIFICATION,
    "AttemptView.id": "6745e3f19b1d4c2a7f3e8b53",
    "BroadcastView.id": "6745e3f09b1d4c2a7f3e8b70",
    "CallbackDeliveryView.id": DELIVERY,
    "CallbackDeliveryView.notification_id": NOTIFICATION,
    "DeviceView.id": DEVICE,
    "broadcast_id": "6745e3f09b1d4c2a7f3e8b70",
    "delivery_id": DELIVERY,
    "device_id": DEVICE,
    "AttemptView.device_id": None,
    "NotificationView.broadcast_id": None,
    "jti": "q0Vd2pT7wYbJ4mXs",
    "request_id": "5b0c7f6e2a914d38",
    "user_id": "ada",
    "topic": "news",
    "slug": "payment_confirmed",
    "number": "1",
    "VersionView.number": 1,
}


REQUESTS: Mapping[str, Any] = {
    "NotificationRequest.user_id": "ada",
    "NotificationRequest.recipient": {"email": "ada@example.com"},
    "NotificationRequest.external_id": "o-1001",
    "NotificationRequest.data": PAID,
    "BroadcastRequest.type": "marketing",
    "BroadcastRequest.content": SPRING,
    "AudienceRequest.topic": "news",
    "CleanupRequest.dry_run": True,
    "ChannelsRequest.channels": ["email"],
    "DeviceRequest.device_token": "cXk3-a-token-of-firebase",
    "DeviceRequest.platform": "android",
    "DeviceRequest.app_version": "2.4.0",
    "DeviceChanges.app_version": "2.5.0",
    "DevicePreferencesRequest.enabled": True,
    "DevicePreferencesRequest.categories": {"marketing": False},
    "TypeRequest.name": "Payment confirmed",
    "TypeRequest.category": "transactional",
    "TypeRequest.example_data": PAID,
    "TemplateRequest.parts": {
        "default": {"subject": "Paid", "body": "We have your {{ amount }} for {{ video_title }}."}
    },
    "TemplateRequest.note": "Shorter.",
    "PersonRequest.email": "ada@example.com",
    "PersonRequest.name": "Ada",
    "PersonRequest.locale": "pt-BR",
    "PersonRequest.timezone": "Europe/Lisbon",
    "PreferencesRequest.preferences": {"marketing": {"muted": True}},
    "SuppressionRequest.reason": "manual",
    "CallbackRequest.url": "https://app.example.com/hooks/notifications",
}


WORDS: Mapping[str, Any] = {
    **IDS,
    **REQUESTS,
    "type": "payment_confirmed",
    "status": "delivered",
    "channel": "email",
    "channels": ["email"],
    "category": "transactional",
    "priority": "normal",
    "reason": "manual",
    "reasons": "manual",
    "by": "type",
    "state": "active",
    "platform": "android",
    "event": "opened",
    "address": "ada@example.com",
    "source": "api",
    "name": "Ada",
    "TypeView.name": "Payment confirmed",
    "email": "ada@example.com",
    "subject": "Paid",
    "body": "We have your 49.90 for Sunrise.",
    "CallbackDeliveryView.type": "delivery.delivered",
    "CallbackDeliveryView.body": {
        "type": "delivery.delivered",
        "timestamp": MOMENT,
        "data": {"notification_id": NOTIFICATION, "channel": "email", "status": "delivered"},
    },
    "BroadcastView.type": "marketing",
    "BroadcastView.status": "running",
    "BroadcastAudienceView.topic": "news",
    "BroadcastView.content": SPRING,
    "data": PAID,
    "BroadcastView.data": {},
    "example_data": PAID,
    "payload": {},
    "attributes": {},
    "errors": [],
    "error_history": [],
    "skipped": [],
    "next": "WyJhZnRlciIsMTc5NjExNTYwMF0:1vCkEz:c2lnbmF0dXJl",
    "previous": None,
    "rejected": 0,
    "BroadcastView.rejected": [],
    "accepted": 1,
    "withdrawn": 0,
    "BroadcastView.accepted": 12000,
    "successful_channels": ["email"],
    "failed_channels": [],
    "lifted": ["manual"],
    "standing": [],
    "is_delivered": True,
    "is_failed": False,
    "is_pending": False,
    "can_retry": False,
    "is_read": False,
    "is_test": False,
    "is_waiting": False,
    "is_published": True,
    "is_complete": True,
    "of_all_apps": True,
    "online": True,
    "app_foreground": False,
    "notification_enabled": True,
    "dry_run": False,
    "marketing_only": False,
    "complete": True,
    "would_send": True,
    "DeliveryView.last_attempt_at": MOMENT,
    "DeliveryView.sent_at": MOMENT,
    "DeliveryView.delivered_at": MOMENT,
    "NotificationView.sent_at": MOMENT,
    "NotificationView.external_id": "o-1001",
    "AttemptView.finished_at": MOMENT,
    "VersionView.published_at": MOMENT,
    "provider": "sendgrid",
    "provider_message_id": "14c5d75ce93.dfd.64b469",
    "AttemptView.status": "sent",
    "AttemptView.platform_response": {"status": 202},
    "duration_ms": 84,
    "status_code": 204,
    "attempt_number": 1,
    "attempt_count": 1,
    "max_attempts": 4,
    "average_attempts": 1.02,
    "index": 0,
    "tries": 1,
    "counted": 1000,
    "total": 1000,
    "sent": 990,
    "failed": 10,
    "value": "payment_confirmed",
    "notifications": 12,
    "attempts": 14,
    "devices": 1,
    "topics": 2,
    "ExportView.topics": ["news"],
    "updated": 3,
    "unread": 3,
    "unseen": 1,
    "older_than_days": 30,
    "device_token": "cXk3-a-token-of-firebase",
    "description": "",
    "max_retries": 3,
    "fallback_after_seconds": 600,
    "template_version": 0,
    "template_id": "payment_confirmed",
    "approved_templates": [],
    "sensitive_variables": [],
    "parts": {"default": {"subject": "Paid", "body": "We have your {{ amount }}."}},
    "text": "We have your 49.90 for Sunrise.",
    "token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl",
    "stream_url": "https://stream.example.com/api/v1/inbox/stream",
    "url": "https://app.example.com/hooks/notifications",
}
"""Words by ``field`` or ``Structure.field``; the second goes before the first."""
