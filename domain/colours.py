"""How well the colours of a brand are read on each other. Pure."""

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "background": "#f3f4f6",
    "surface": "#ffffff",
    "text": "#374151",
    "muted": "#4b5563",
    "accent": "#4f46e5",
    "on_accent": "#ffffff",
}
DARK: Mapping[str, str] = {
    "background": "#111827",
    "surface": "#1f2937",
    "text": "#e5e7eb",
    "muted": "#cbd5e1",
    "accent": "#a5b4fc",
    "on_accent": "#111827",
}
PALETTES: Mapping[str, Mapping[str, str]] = {"light": LIGHT, "dark": DARK}
"""The colours that a brand has unless it names others."""
MIN_CONTRAST = 4.5
"""What WCAG 2.2 asks of text at level AA: https://www.w3.org/TR/WCAG22/#contrast-minimum."""
READ_ON = (
    ("text", "surface"),
    ("muted", "surface"),
    ("muted", "background"),
    ("accent", "surface"),
    ("on_accent", "accent"),
)
"""The colours of a palette that emails have as text, and what each is read on."""
_DARKEST = 0.04045
"""Up to this share, a channel of sRGB is linear."""


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours such as ``#4f46e5``: 1 is none, 21 black on white.

    It is WCAG's: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio.
    """
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(share: float) -> float:
    return share / 12.92 if share <= _DARKEST else ((share + 0.055) / 1.055) ** 2.4
