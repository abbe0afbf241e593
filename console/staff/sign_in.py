"""Sign-in: password, second factor, its set-up and recovery codes, and the own password."""

from typing import Any

import segno
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse, reverse_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods
from unfold.forms import AdminOwnPasswordChangeForm, AuthenticationForm
from unfold.widgets import UnfoldAdminTextInputWidget

from access.models import StaffUser
from access.staff import second_factor
from access.staff.oidc.discovery import is_enabled
from access.staff.reauthentication import is_password, mark_authenticated
from access.staff.second_factor import TRY_WINDOW, CodeResult
from access.staff.second_factor_middleware import CHECK, RENEW, SET_UP, is_verified, mark_verified
from domain.time import utc_now

from ..widgets.actions import record_change, require_post
from ..widgets.links import next_page
from ..widgets.reauthentication import require_reauthentication

ERRORS = {
    CodeResult.WRONG: "Invalid or used code. Wait for the next one.",
    CodeResult.PAUSED: f"Too many attempts. Try again in {TRY_WINDOW.seconds // 60} minutes.",
}


class CodeForm(forms.Form):
    """Form for a code of the authenticator app or a recovery code."""

    code = forms.CharField(
        max_length=40,
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "one-time-code", "spellcheck": "false"}
        ),
    )


class SignInForm(AuthenticationForm):
    """Form of the username and password."""

    error_messages = {
        "invalid_login": "Wrong username or password. Both are case-sensitive.",
        "inactive": "This account is deactivated. Ask an administrator.",
        "no_staff": "This account has no access to the console. Ask an administrator.",
        "external": "Only superusers sign in with a password. Use the button above.",
    }

    def confirm_login_allowed(self, user: Any) -> None:
        """Check the account after its password. Raises ValidationError."""
        may_use_password = user.is_superuser or not is_enabled()
        for is_allowed, code in (
            (user.is_active, "inactive"),
            (user.is_staff, "no_staff"),
            (may_use_password, "external"),
        ):
            if not is_allowed:
                raise forms.ValidationError(self.error_messages[code], code=code)


class OwnPasswordForm(AdminOwnPasswordChangeForm):
    """Form of the own password. Wrong old passwords count towards the lockout."""

    def __init__(self, *args: Any, request: HttpRequest, **options: Any) -> None:
        super().__init__(*args, **options)
        self.request = request

    def clean_old_password(self) -> str:
        """Return the old password. Raises ValidationError if it is wrong."""
        password: str = self.cleaned_data["old_password"]
        if not is_password(self.request, password):
            raise forms.ValidationError(
                self.error_messages["password_incorrect"], code="password_incorrect"
            )
        return password


class OwnPasswordView(PasswordChangeView):
    """The page on which staff change their own password."""

    form_class = OwnPasswordForm
    success_url = reverse_lazy("admin:password_change_done")

    def get_form_kwargs(self) -> dict[str, Any]:
        """Return the arguments of the form, with the request."""
        return {**super().get_form_kwargs(), "request": self.request}

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """Return the context, with that of the console's frame."""
        self.request.current_app = admin.site.name
        return super().get_context_data(**admin.site.each_context(self.request), **context)


@sensitive_post_parameters("code")
@require_http_methods(["GET", "POST"])
def check(request: HttpRequest) -> HttpResponse:
    """Ask for and check a code of the authenticator app, or a recovery code."""
    enrollment = second_factor.enrollment_of(request.user.pk)
    if enrollment is None:
        return HttpResponseRedirect(reverse(SET_UP))
    if is_verified(request, enrollment):
        return HttpResponseRedirect(next_page(request))
    form = CodeForm(request.POST or None)
    if form.is_valid():
        code = form.cleaned_data["code"]
        now = utc_now()
        result = second_factor.check(request.user.pk, code, now=now)
        if result is CodeResult.RIGHT:
            mark_verified(request, enrollment)
            mark_authenticated(request, now=now)
            left = second_factor.enrollment_of(request.user.pk)
            if left is not None and left.recovery_codes < enrollment.recovery_codes:
                text = f"Recovery code used; {left.recovery_codes} left."
                messages.warning(request, f"{text} Regenerate them in the account menu.")
            return HttpResponseRedirect(next_page(request))
        form.add_error("code", ERRORS[result])
    # Set the focus by script: at first the theme hides the page, so autofocus fails.
    form.fields["code"].widget.attrs["x-data"] = "focused"
    return _page(request, "check.html", "Two-factor authentication", form=form)


@sensitive_post_parameters("code")
@require_http_methods(["GET", "POST"])
def set_up(request: HttpRequest) -> HttpResponse:
    """Enroll an authenticator app, or replace the enrolled one."""
    now, enrollment = utc_now(), second_factor.enrollment_of(request.user.pk)
    if enrollment is not None and not is_verified(request, enrollment):
        return HttpResponseRedirect(f"{reverse(CHECK)}?next={reverse(SET_UP)}")
    if request.method == "POST" and (refused := require_reauthentication(request)):
        return refused
    form = CodeForm(request.POST or None)
    if form.is_valid():
        codes = second_factor.confirm(request.user.pk, form.cleaned_data["code"], now=now)
        if codes is not None:
            return _recovery_codes_page(request, codes, "Set up two-factor authentication.")
        form.add_error("code", ERRORS[CodeResult.WRONG])
    invitation = second_factor.begin_enrollment(
        request.user.pk, name=request.user.get_username(), now=now
    )
    return _page(
        request,
        "set_up.html",
        "Set up two-factor authentication",
        form=form,
        enrollment=enrollment,
        key=" ".join(invitation.key[n : n + 4] for n in range(0, len(invitation.key), 4)),
        # Scanners need dark modules on a light ground in any theme.
        qr_code=segno.make(invitation.uri, error="m").svg_data_uri(
            scale=5, border=4, dark="#000", light="#fff"
        ),
        renew_url=reverse(RENEW),
    )


def renew(request: HttpRequest) -> HttpResponse:
    """Replace the recovery codes; POST only."""
    if refused := require_post(request, allowed=True):
        return refused
    enrollment = second_factor.enrollment_of(request.user.pk)
    if enrollment is None or not is_verified(request, enrollment):
        return HttpResponseRedirect(reverse(CHECK))
    if refused := require_reauthentication(request):
        return refused
    codes = second_factor.renew_recovery_codes(request.user.pk)
    return _recovery_codes_page(request, codes, "Regenerated recovery codes.")


def _recovery_codes_page(request: HttpRequest, codes: list[str], message: str) -> HttpResponse:
    enrollment = second_factor.enrollment_of(request.user.pk)
    if enrollment is not None:
        mark_verified(request, enrollment)
    record_change(request, StaffUser, request.user.pk, message, name=request.user.get_username())
    return _page(request, "recovery_codes.html", "Your recovery codes", codes=codes)


def _page(request: HttpRequest, template: str, title: str, **context: Any) -> HttpResponse:
    request.current_app = admin.site.name
    return TemplateResponse(
        request,
        f"console/sign_in/{template}",
        {
            **admin.site.each_context(request),
            "title": title,
            "next": next_page(request),
            "logout_url": reverse("admin:logout"),
            **context,
        },
    )


urlpatterns = [
    path("second-factor/", admin.site.admin_view(check), name=CHECK),
    path("second-factor/set-up/", admin.site.admin_view(set_up), name=SET_UP),
    path("second-factor/recovery-codes/", admin.site.admin_view(renew), name=RENEW),
    # In place of the page of Django's admin, which doesn't count wrong passwords.
    path("password_change/", admin.site.admin_view(OwnPasswordView.as_view())),
]
