"""The schema of a request to FCM: field names and types, from Google's discovery document.

Google accepts names in camel case and in snake case.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

PACKAGE = "type.googleapis.com/google.firebase.fcm.v1"


class ScalarType(Enum):
    """A scalar type, or a map or struct. The value is the type's name in error messages."""

    STRING = "TYPE_STRING"
    BOOL = "TYPE_BOOL"
    INT32 = "TYPE_INT32"
    FLOAT = "TYPE_FLOAT"
    DURATION = "type.googleapis.com/google.protobuf.Duration"
    TIMESTAMP = "type.googleapis.com/google.protobuf.Timestamp"
    STRUCT = "type.googleapis.com/google.protobuf.Struct"
    STRING_MAP = "Map"


@dataclass(frozen=True, slots=True)
class Violation:
    """The path of an invalid field, and the error message."""

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class EnumType:
    """An enumeration: its name in error messages, and its values."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MessageType:
    """An object whose fields are ``TYPES[name]``."""

    name: str


@dataclass(frozen=True, slots=True)
class ListType:
    """A list of items of one type."""

    item: "Type"


Type = ScalarType | EnumType | MessageType | ListType

S, B, D = ScalarType.STRING, ScalarType.BOOL, ScalarType.DURATION
_LABEL: dict[str, Type] = {"analyticsLabel": S}
_NOTIFICATION_PRIORITY = EnumType(
    "AndroidNotification.NotificationPriority",
    tuple(f"PRIORITY_{name}" for name in ("UNSPECIFIED", "MIN", "LOW", "DEFAULT", "HIGH", "MAX")),
)
_ANDROID_NOTIFICATION: dict[str, Type] = {
    **dict.fromkeys(("title", "body", "icon", "color", "sound", "tag", "clickAction", "image"), S),
    **dict.fromkeys(("bodyLocKey", "titleLocKey", "channelId", "ticker"), S),
    **dict.fromkeys(("bodyLocArgs", "titleLocArgs"), ListType(S)),
    **dict.fromkeys(("sticky", "localOnly", "defaultSound", "defaultVibrateTimings"), B),
    "defaultLightSettings": B,
    "eventTime": ScalarType.TIMESTAMP,
    "notificationPriority": _NOTIFICATION_PRIORITY,
    "vibrateTimings": ListType(D),
    "visibility": EnumType(
        "AndroidNotification.Visibility", ("VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET")
    ),
    "notificationCount": ScalarType.INT32,
    "lightSettings": MessageType("LightSettings"),
}
_ANDROID: dict[str, Type] = {
    **dict.fromkeys(("collapseKey", "restrictedPackageName"), S),
    **dict.fromkeys(("directBootOk", "bandwidthConstrainedOk", "restrictedSatelliteOk"), B),
    "ttl": D,
    "data": ScalarType.STRING_MAP,
    "fcmOptions": MessageType("AndroidFcmOptions"),
}

TYPES: Mapping[str, Mapping[str, Type]] = {
    "SendMessageRequest": {"message": MessageType("Message"), "validateOnly": B},
    "Message": {
        **dict.fromkeys(("name", "token", "fid", "topic", "condition"), S),
        "data": ScalarType.STRING_MAP,
        "notification": MessageType("Notification"),
        "android": MessageType("AndroidConfig"),
        "androidV2": MessageType("AndroidConfigV2"),
        "webpush": MessageType("WebpushConfig"),
        "apns": MessageType("ApnsConfig"),
        "fcmOptions": MessageType("FcmOptions"),
    },
    "Notification": {"title": S, "body": S, "image": S},
    "AndroidConfig": {
        **_ANDROID,
        "priority": EnumType("AndroidConfig.AndroidMessagePriority", ("NORMAL", "HIGH")),
        "notification": MessageType("AndroidNotification"),
    },
    "AndroidConfigV2": {
        **_ANDROID,
        "remoteNotification": MessageType("AndroidRemoteNotification"),
        "backgroundSync": MessageType("AndroidBackgroundSyncMessage"),
    },
    "AndroidRemoteNotification": {
        "notification": MessageType("AndroidNotificationV2"),
        "mutableContent": B,
        "useAsV1DataMessage": B,
    },
    "AndroidBackgroundSyncMessage": {},
    "AndroidNotification": {
        **_ANDROID_NOTIFICATION,
        "bypassProxyNotification": B,
        "proxy": EnumType(
            "AndroidNotification.Proxy",
            ("PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"),
        ),
    },
    "AndroidNotificationV2": {**_ANDROID_NOTIFICATION, "id": ScalarType.INT32},
    "LightSettings": {"color": MessageType("Color"), "lightOnDuration": D, "lightOffDuration": D},
    "Color": dict.fromkeys(("red", "green", "blue", "alpha"), ScalarType.FLOAT),
    "WebpushConfig": {
        "headers": ScalarType.STRING_MAP,
        "data": ScalarType.STRING_MAP,
        "notification": ScalarType.STRUCT,
        "fcmOptions": MessageType("WebpushFcmOptions"),
    },
    "ApnsConfig": {
        "headers": ScalarType.STRING_MAP,
        "payload": ScalarType.STRUCT,
        "fcmOptions": MessageType("ApnsFcmOptions"),
        "liveActivityToken": S,
    },
    "FcmOptions": _LABEL,
    "AndroidFcmOptions": _LABEL,
    "ApnsFcmOptions": {**_LABEL, "image": S},
    "WebpushFcmOptions": {**_LABEL, "link": S},
}


def snake(name: str) -> str:
    """Return a field's name in snake case."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


FIELDS: Mapping[str, Mapping[str, tuple[str, Type]]] = {
    owner: {
        spelling: (snake(name), kind)
        for name, kind in fields.items()
        for spelling in (name, snake(name))
    }
    for owner, fields in TYPES.items()
}
"""By type and by field name in either case: the snake-case name and the field's type."""
