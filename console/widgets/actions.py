"""Buttons of the admin: each is a POST, and has its permission."""

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed


def require_post(request: HttpRequest, *, allowed: bool) -> HttpResponse | None:
    """Return 405 for anything but a POST, and None for one to go on with.

    Raises PermissionDenied for a POST that the user may not make.
    """
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not allowed:
        raise PermissionDenied
    return None
