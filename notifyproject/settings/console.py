"""Look of the console: settings of django-unfold."""

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Notifications",
    "SITE_HEADER": "Notifications",
    "SITE_SUBHEADER": "Operations console",
    "SITE_SYMBOL": "notifications_active",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda _: static("console/icon.svg")}
    ],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "ENVIRONMENT": "console.navigation.environment_badge",
    "DASHBOARD_CALLBACK": "console.home.dashboard",
    "LOGIN": {"image": lambda _request: static("console/login.svg")},
    "STYLES": [lambda _request: static("console/console.css")],
    "SCRIPTS": [
        lambda _request: static("console/theme.js"),
        lambda _request: static("console/keyboard.js"),
        lambda _request: static("console/palette.js"),
        lambda _request: static("console/forms.js"),
        lambda _request: static("console/filters.js"),
        lambda _request: static("console/times.js"),
        lambda _request: static("console/views.js"),
    ],
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "navigation": "console.sidebar.sidebar",
    },
    "ACCOUNT": {
        "navigation": [
            {"title": "Two-factor authentication", "link": reverse_lazy("second-factor-set-up")},
            {"title": "Change password", "link": reverse_lazy("admin:password_change")},
        ]
    },
    "BORDER_RADIUS": "8px",
    "COLORS": {
        "primary": {
            "50": "oklch(96.2% .018 272.314)",
            "100": "oklch(93% .034 272.788)",
            "200": "oklch(87% .065 274.039)",
            "300": "oklch(78.5% .115 274.713)",
            "400": "oklch(67.3% .182 276.935)",
            "500": "oklch(58.5% .233 277.117)",
            "600": "oklch(51.1% .262 276.966)",
            "700": "oklch(45.7% .24 277.023)",
            "800": "oklch(39.8% .195 277.366)",
            "900": "oklch(35.9% .144 278.697)",
            "950": "oklch(25.7% .09 281.288)",
        }
    },
}
