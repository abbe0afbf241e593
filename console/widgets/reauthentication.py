"""The page on which staff enter their password or a code again before a sensitive action."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from unfold.widgets import UnfoldAdminPasswordWidget

from access.models import StaffUser
from access.staff.oidc.sessions import is_oidc_session
from access.staff.reauthentication import WINDOW, is_recent, reauthenticate
from access.staff.second_factor import TRY_WINDOW, CodeResult, enrollment_of
from domain.time import utc_now

from .actions import record_change
from .links import HOME
from .lists import ConsoleAdmin

CREDENTIAL, BACK = "reauthentication", "reauthentication_back"
ERRORS = {
    CodeResult.WRONG: "Wrong password, or wrong or used code.",
    CodeResult.PAUSED: "Too many codes. Enter your password, or try again in "
    f"{TRY_WINDOW.seconds // 60} minutes.",
}


class ReauthenticationForm(forms.Form):
    """Form for the password, or a code of the authenticator app."""

    reauthentication = forms.CharField(
        label="Password",
        max_length=4096,
        strip=False,
        # Set the focus by script: at first the theme hides the page, so autofocus fails.
        widget=UnfoldAdminPasswordWidget(
            attrs={"autocomplete": "current-password", "x-data": "focused"}
        ),
    )


def require_reauthentication(
    request: HttpRequest, *, is_download: bool = False
) -> HttpResponse | None:
    """Return None if staff entered a password or code within 10 minutes, or else a page for it.

    The page posts the request's own fields again, together with the password or code, so that the
    action runs as soon as it is right. New passwords among the fields are entered again. A download
    would leave the page open, so staff go back instead, and start it again.
    """
    request.sensitive_post_parameters = "__ALL__"
    now = utc_now()
    if is_recent(request, now=now):
        return None
    form = ReauthenticationForm(request.POST if CREDENTIAL in request.POST else None)
    is_external = is_oidc_session(request)
    if form.is_valid():
        result = reauthenticate(
            request, form.cleaned_data[CREDENTIAL], has_password=not is_external, now=now
        )
        if result is CodeResult.RIGHT:
            name = request.user.get_username()
            record_change(request, StaffUser, request.user.pk, "Re-authenticated.", name=name)
            if not is_download:
                return None
            messages.info(request, "Identity confirmed. Start the download again.")
            return HttpResponseRedirect(_back(request))
        form.add_error(CREDENTIAL, ERRORS[result])
    has_code = enrollment_of(request.user.pk) is not None
    if is_external:
        form.fields[CREDENTIAL].label = "Or a code from your authenticator app"
        form.fields[CREDENTIAL].required = False
    elif has_code:
        form.fields[CREDENTIAL].label = "Password, or code from your authenticator app"
    request.current_app = admin.site.name
    context = {
        **admin.site.each_context(request),
        "title": "Confirm your identity",
        "form": form,
        # Staff without a password confirm at the provider, in another tab: this page keeps the
        # action's fields.
        "provider": settings.OIDC_NAME if is_external else None,
        "provider_url": reverse("oidc-reauthenticate"),
        "is_unconfirmed": is_external and BACK in request.POST and not form.errors,
        "has_field": has_code or not is_external,
        "minutes": WINDOW.seconds // 60,
        "repeated": [
            (name, value)
            for name, values in request.POST.lists()
            if name not in (CREDENTIAL, BACK, "csrfmiddlewaretoken")
            and not name.startswith("password")
            for value in values
        ],
        "back": _back(request),
    }
    return TemplateResponse(request, "console/sign_in/reauthenticate.html", context)


class ReauthenticatedAdmin(ConsoleAdmin):
    """An admin whose objects are added and changed after re-authentication only."""

    def changeform_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        """Show the form. On POST, require re-authentication, and store the object."""
        if request.method == "POST" and (refused := require_reauthentication(request)):
            return refused
        response: HttpResponse = super().changeform_view(request, *args, **options)
        return response


def _back(request: HttpRequest) -> str:
    """Return the URL of the page that led here, or of Home if it is unknown."""
    target = request.POST.get(BACK) or request.headers.get("Referer", "")
    is_safe = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if is_safe else reverse(HOME)
