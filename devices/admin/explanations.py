"""What the console says of devices, in words for people who do not read code. Pure."""

from collections.abc import Mapping

from ..models import DeactivationReason, Platform

R = DeactivationReason

PLATFORMS: Mapping[Platform, str] = {
    Platform.ANDROID: "Android",
    Platform.IOS: "iOS",
    Platform.WEB: "Web",
}
REASONS: Mapping[DeactivationReason, str] = {
    R.UNREGISTERED: "App removed",
    R.SENDER_MISMATCH: "Another sender's",
    R.SUSPECT: "Malformed token",
    R.REPLACED: "New token",
    R.BY_USER: "Off by its app",
    R.BY_OPERATOR: "Off by staff",
}
MEANINGS: Mapping[DeactivationReason, str] = {
    R.UNREGISTERED: (
        "The push provider says that the app was removed, or got a new token. It comes back by "
        "itself when the person opens the app."
    ),
    R.SENDER_MISMATCH: (
        "The push provider says that the token belongs to another project than ours. The app was "
        "built with the wrong keys: its developers can mend it."
    ),
    R.SUSPECT: (
        "The push provider called its token malformed three times in a row. It comes back by "
        "itself when the app registers again."
    ),
    R.REPLACED: "The app got a new token: it is in the list as another device.",
    R.BY_USER: (
        "The app switched it off, such as when its user signed out. It comes back when the app "
        "registers again."
    ),
    R.BY_OPERATOR: "A member of staff switched it off: the audit log says who.",
}
