"""The variables of web push."""

from typing import Any

from domain.web_push import SUBJECT_PATTERN
from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain

_HOST = r"[a-z0-9-]+(\.[a-z0-9-]+)+"


class Settings(ProviderGroup):
    """The service's keys for browsers, and their push services."""

    heading = "Web push"
    see = "guides/web_push.md"
    provider = "webpush"
    channel = "push"

    WEBPUSH_KEYS: str = declare(
        kinds.token(min_length=43, is_issued=True),
        "",
        "VAPID private keys, separated by commas, the newest first; `manage.py webpush_keys` adds "
        "one",
        empty="no web push",
    )
    WEBPUSH_SUBJECT: str = declare(
        kinds.text(
            SUBJECT_PATTERN,
            "mailto: and an address, or an https URL, of a public host and without spaces",
        ),
        "",
        "how push services reach you: `mailto:…` or an https URL",
    )
    WEBPUSH_HOSTS: tuple[str, ...] = declare(
        kinds.items(rf"{_HOST}(\s*,\s*{_HOST})*", "host names in lower case, separated by commas"),
        "fcm.googleapis.com,push.services.mozilla.com,push.apple.com,notify.windows.com",
        "hosts of push services, separated by commas, with the hosts below them",
    )
    WEBPUSH_HOME_URL: str = declare(
        kinds.url(Plain.LOOPBACK), "", "page that a push without a link opens", empty="`PUBLIC_URL`"
    )

    def configure(self, environment: Any) -> dict[str, Any]:
        """Return the settings that follow."""
        return super().configure(environment) | {
            "WEBPUSH_KEYS": tuple(kinds.split_list(self.WEBPUSH_KEYS)),
            "WEBPUSH_HOME_URL": self.WEBPUSH_HOME_URL or environment.PUBLIC_URL,
        }
