"""Addresses of pages of the documentation. Without ``DOCS_URL``, there are none."""

from django.conf import settings


def problem_type(code: str) -> str:
    """Return the ``type`` of a problem: the address of its page, or else a URN."""
    return _page("problems", code) or f"urn:notifications:problem:{code}"


def failure_page(code: str | None) -> str:
    """Return the address of a failure code's page, or an empty text."""
    return _page("failures", code) if code else ""


def _page(folder: str, name: str) -> str:
    base_url: str = settings.DOCS_URL
    return f"{base_url}/{folder}/{name}.html" if base_url else ""
