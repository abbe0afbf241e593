"""The shape of a request to FCM: field names and types, as Google's own description has them.

Names are compared in camel case and in snake case: Google takes both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

PACKAGE = "type.googleapis.com/google.firebase.fcm.v1"


class Plain(Enum):
    """A type that is not made of fields; the value is what an error calls it."""

    STRING = "TYPE_STRING"
    BOOL = "TYPE_BOOL"
    INT32 = "TYPE_INT32"
    FLOAT = "TYPE_FLOAT"
    DURATION = "type.googleapis.com/google.protobuf.Duration"
    TIMESTAMP = "type.googleapis.com/google.protobuf.Timestamp"
    STRUCT = "type.googleapis.com/google.protobuf.Struct"
    STRINGS_BY_NAME = "Map"


@dataclass(frozen=True, slots=True)
class OneOf:
    """An enumeration."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """An object of the type with this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Many:
    """A list."""

    of: "Type"


Type = Plain | OneOf | Fields | Many

S, B, D = Plain.STRING, Plain.BOOL, Plain.DURATION
_LABEL: dict[str, Type] = {"analyticsLabel": S}
_COLOUR: dict[str, Type] = dict.fromkeys(("red", "green", "blue", "alpha"), Plain.FLOAT)
_LIGHTS: dict[str, Type] = {"color": Fields("Color"), "lightOnDuration": D, "lightOffDuration": D}
_NOTIFICATION_PRIORITY = OneOf(
    "AndroidNotification.NotificationPriority",
    tuple(f"PRIORITY_{name}" for name in ("UNSPECIFIED", "MIN", "LOW", "DEFAULT", "HIGH", "MAX")),
)
_ON_ANDROID: dict[str, Type] = {
    **dict.fromkeys(("title", "body", "icon", "color", "sound", "tag", "clickAction", "image"), S),
    **dict.fromkeys(("bodyLocKey", "titleLocKey", "channelId", "ticker"), S),
    **dict.fromkeys(("bodyLocArgs", "titleLocArgs"), Many(S)),
    **dict.fromkeys(("sticky", "localOnly", "defaultSound", "defaultVibrateTimings"), B),
    "defaultLightSettings": B,
    "eventTime": Plain.TIMESTAMP,
    "notificationPriority": _NOTIFICATION_PRIORITY,
    "vibrateTimings": Many(D),
    "visibility": OneOf(
        "AndroidNotification.Visibility",
        ("VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"),
    ),
    "notificationCount": Plain.INT32,
    "lightSettings": Fields("LightSettings"),
}
_ANDROID: dict[str, Type] = {
    "collapseKey": S,
    "ttl": D,
    "restrictedPackageName": S,
    "data": Plain.STRINGS_BY_NAME,
    "fcmOptions": Fields("AndroidFcmOptions"),
    "directBootOk": B,
    "bandwidthConstrainedOk": B,
    "restrictedSatelliteOk": B,
}

TYPES: Mapping[str, Mapping[str, Type]] = {
    "SendMessageRequest": {"message": Fields("Message"), "validateOnly": B},
    "Message": {
        **dict.fromkeys(("name", "token", "fid", "topic", "condition"), S),
        "data": Plain.STRINGS_BY_NAME,
        "notification": Fields("Notification"),
        "android": Fields("AndroidConfig"),
        "androidV2": Fields("AndroidConfigV2"),
        "webpush": Fields("WebpushConfig"),
        "apns": Fields("ApnsConfig"),
        "fcmOptions": Fields("FcmOptions"),
    },
    "Notification": {"title": S, "body": S, "image": S},
    "AndroidConfig": {
        **_ANDROID,
        "priority": OneOf("AndroidConfig.AndroidMessagePriority", ("NORMAL", "HIGH")),
        "notification": Fields("AndroidNotification"),
    },
    "AndroidConfigV2": {
        **_ANDROID,
        "remoteNotification": Fields("AndroidRemoteNotification"),
        "backgroundSync": Fields("AndroidBackgroundSyncMessage"),
    },
    "AndroidRemoteNotification": {
        "notification": Fields("AndroidNotificationV2"),
        "mutableContent": B,
        "useAsV1DataMessage": B,
    },
    "AndroidBackgroundSyncMessage": {},
    "AndroidNotification": {
        **_ON_ANDROID,
        "bypassProxyNotification": B,
        "proxy": OneOf(
            "AndroidNotification.Proxy",
            ("PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"),
        ),
    },
    "AndroidNotificationV2": {**_ON_ANDROID, "id": Plain.INT32},
    "LightSettings": _LIGHTS,
    "Color": _COLOUR,
    "WebpushConfig": {
        "headers": Plain.STRINGS_BY_NAME,
        "data": Plain.STRINGS_BY_NAME,
        "notification": Plain.STRUCT,
        "fcmOptions": Fields("WebpushFcmOptions"),
    },
    "ApnsConfig": {
        "headers": Plain.STRINGS_BY_NAME,
        "payload": Plain.STRUCT,
        "fcmOptions": Fields("ApnsFcmOptions"),
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


BY_EITHER_NAME: Mapping[str, Mapping[str, tuple[str, Type]]] = {
    owner: {
        spelling: (snake(name), kind)
        for name, kind in fields.items()
        for spelling in (name, snake(name))
    }
    for owner, fields in TYPES.items()
}
"""For each type: a field's name in either spelling, with its name in snake case."""
