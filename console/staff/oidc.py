"""Sign-in by an OpenID provider: start, callback, re-authentication, and back-channel logout."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.contrib import admin
from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from access.clients.registry import system_client_id
from access.models import StaffUser
from access.staff import lockout
from access.staff.oidc import accounts, flow, sessions, tokens
from access.staff.oidc.discovery import Provider, is_enabled, provider
from access.staff.oidc.errors import Refusal, RefusedError, UnavailableError
from access.staff.oidc.flow import SignInAttempt
from access.staff.oidc.middleware import end_session
from access.staff.oidc.tokens import LEEWAY, Identity
from access.staff.reauthentication import mark_authenticated_at
from access.staff.second_factor_middleware import mark_vouched_for
from domain.time import utc_now
from notifyproject.platform import audit

from ..widgets.links import next_page

log = structlog.get_logger(__name__)
SIGN_IN, CALLBACK = "oidc-sign-in", "oidc-callback"
REAUTHENTICATE, LOGOUT = "oidc-reauthenticate", "oidc-back-channel-logout"
BACKEND = "access.staff.permissions.StaffBackend"
SESSION_KEY = "oidc_attempts"
MAX_ATTEMPTS = 5
"""Sign-ins that a browser may have begun at once, in tabs."""
ATTEMPT_LIFETIME = timedelta(minutes=10)
MAX_PARAMETER = 4_096
REFUSED_STATUS, UNAVAILABLE_STATUS = 403, 503
EXPLANATIONS = {
    Refusal.STATE: "This sign-in wasn't begun in this browser, took longer than 10 minutes, or was "
    "used already.",
    Refusal.DENIED: "The provider refused the sign-in, or you canceled it.",
    Refusal.NO_GROUP: "None of your groups at the provider has a role in this console. Ask an "
    "administrator of the provider to add you to one.",
    Refusal.ROLE_MISSING: "Your group is mapped to a role that doesn't exist. An operator creates "
    "the roles with manage.py create_roles.",
    Refusal.UNCHECKABLE: "The provider gives the console no way to check your groups later. An "
    "operator can fix that: see the guide to sign-in.",
    Refusal.INACTIVE: "Your account in this console is deactivated. Ask an administrator.",
    Refusal.SUBJECT: "You signed in at the provider as another person.",
    Refusal.AUTH_TIME: "The provider didn't ask for your credentials again, so your identity isn't "
    "confirmed.",
    Refusal.CODE: "The provider rejected the sign-in: it was used already, or took too long.",
}
OTHER_EXPLANATION = "The provider's response isn't valid, so the console doesn't trust it."


@never_cache
@require_GET
def sign_in(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider to sign in."""
    _require_enabled()
    if request.user.is_authenticated:
        return HttpResponseRedirect(next_page(request))
    if request.headers.get("Sec-Fetch-Dest", "document") != "document":
        # Such as an image of another site, which would use up what the visitor's address may begin.
        raise Http404
    if not lockout.may_begin(request, now=utc_now()):
        return lockout.locked_out(request)
    return _start(request, is_renewed=False)


@never_cache
@require_GET
def reauthenticate(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider, which asks for the credentials again."""
    _require_enabled()
    if not sessions.is_oidc_session(request):
        raise Http404
    return _start(request, is_renewed=True)


@never_cache
@require_GET
def callback(request: HttpRequest) -> HttpResponse:
    """Finish a sign-in or re-authentication with the code from the provider."""
    _require_enabled()
    now = utc_now()
    if lockout.is_address_locked(request, now=now):
        return lockout.locked_out(request)
    begun: dict[str, Any] = {}
    try:
        begun = _take_begun(request, now=now)
        identity, issued = _redeem(request, begun)
        if begun["is_renewed"]:
            return _confirm(request, identity, issued, begun=begun, now=now)
        return _sign_in(request, identity, issued, begun=begun, now=now)
    except RefusedError as error:
        if begun:
            # Without a sign-in that this browser began, another site may have sent it here.
            lockout.count_refusal(request, now=now)
        return _refused(request, error, target=begun.get("next", ""))
    except UnavailableError as error:
        return _unavailable(request, error, target=begun.get("next", ""))


@csrf_exempt
@never_cache
@require_POST
def back_channel_logout(request: HttpRequest) -> HttpResponse:
    """End the sessions that the provider's logout token names."""
    _require_enabled()
    now = utc_now()
    try:
        logout = tokens.verify_logout_token(
            request.POST.get("logout_token", ""), provider=provider(), now=now
        )
        count = sessions.end_by_provider(logout)
    except RefusedError as error:
        log.warning("oidc_logout_refused", reason=error.reason.value, detail=error.detail)
        return JsonResponse({"error": "invalid_request"}, status=400)
    except UnavailableError as error:
        log.warning("oidc_provider_unavailable", error=str(error))
        return JsonResponse({"error": "temporarily_unavailable"}, status=UNAVAILABLE_STATUS)
    log.info("oidc_sessions_ended", count=count)
    return HttpResponse(status=200)


def _require_enabled() -> None:
    if not is_enabled():
        raise Http404


def _start(request: HttpRequest, *, is_renewed: bool) -> HttpResponse:
    attempt = flow.new_attempt()
    target = next_page(request)
    try:
        url = flow.authorization_url(
            attempt, provider=provider(), redirect_uri=_redirect_uri(), is_renewed=is_renewed
        )
    except UnavailableError as error:
        return _unavailable(request, error, target=target)
    except RefusedError as error:
        return _refused(request, error, target=target)
    begun = {
        **asdict(attempt),
        "next": target,
        "is_renewed": is_renewed,
        "at": utc_now().timestamp(),
    }
    stored = [*request.session.get(SESSION_KEY, []), begun]
    request.session[SESSION_KEY] = stored[-MAX_ATTEMPTS:]
    if not request.user.is_authenticated:
        # Everybody can begin a sign-in: what it stores ends with it.
        request.session.set_expiry(int(ATTEMPT_LIFETIME.total_seconds()))
    return HttpResponseRedirect(url)


def _take_begun(request: HttpRequest, *, now: datetime) -> dict[str, Any]:
    """Return what this browser stored for the state, once. Raises RefusedError."""
    state = request.GET.get("state", "")
    stored: list[dict[str, Any]] = request.session.get(SESSION_KEY, [])
    found = next((begun for begun in stored if begun["state"] == state), None)
    if found is None:
        raise RefusedError(Refusal.STATE)
    request.session[SESSION_KEY] = [begun for begun in stored if begun is not found]
    # Saved at once: what follows may fail, and the state must not be used again.
    request.session.save()
    if now.timestamp() - found["at"] > ATTEMPT_LIFETIME.total_seconds():
        raise RefusedError(Refusal.STATE, "expired")
    return found


def _redeem(request: HttpRequest, begun: dict[str, Any]) -> tuple[Identity, flow.Tokens]:
    """Return the verified identity and the tokens. Raises RefusedError and UnavailableError."""
    source = provider()
    _check_issuer(request, source)
    if "error" in request.GET:
        raise RefusedError(Refusal.DENIED)
    code = request.GET.get("code", "")
    if not 0 < len(code) <= MAX_PARAMETER:
        raise RefusedError(Refusal.MALFORMED, "code")
    attempt = SignInAttempt(state=begun["state"], nonce=begun["nonce"], verifier=begun["verifier"])
    issued = flow.redeem_code(code, attempt, provider=source, redirect_uri=_redirect_uri())
    if issued.id_token is None:
        raise RefusedError(Refusal.MALFORMED, "no ID token")
    identity = tokens.verify_id_token(issued.id_token, provider=source, nonce=attempt.nonce)
    return identity, issued


def _check_issuer(request: HttpRequest, source: Provider) -> None:
    """Check the issuer in the response (RFC 9207). Raises RefusedError and UnavailableError."""
    stated = request.GET.get("iss")
    is_required = source.metadata().authorization_response_iss_parameter_supported
    if stated != source.issuer and (stated is not None or is_required):
        raise RefusedError(Refusal.ISSUER, "parameter")


def _sign_in(
    request: HttpRequest,
    identity: Identity,
    issued: flow.Tokens,
    *,
    begun: dict[str, Any],
    now: datetime,
) -> HttpResponse:
    try:
        names = _find_roles(identity, issued)
        user = accounts.store_account(identity, now=now)
        accounts.apply_roles(user, names)
    except RefusedError as error:
        _record_refusal(identity, error, now=now)
        raise
    accounts.apply_profile(user, identity)
    login(request, user, backend=BACKEND)
    request.session.pop(SESSION_KEY, None)
    request.session.set_expiry(None)
    sessions.begin(request, user.pk, identity, issued, now=now)
    mark_authenticated_at(request, identity.authenticated_at, now=now)
    if identity.has_second_factor:
        mark_vouched_for(request)
    factor = "provider" if identity.has_second_factor else "console"
    roles = ", ".join(sorted(names))
    sessions.record(user.pk, f"Signed in by the provider. Roles: {roles}. Second factor: {factor}.")
    log.info("oidc_signed_in", user_id=str(user.pk), roles=roles, second_factor=factor)
    return HttpResponseRedirect(begun["next"])


def _find_roles(identity: Identity, issued: flow.Tokens) -> frozenset[str]:
    """Return the roles by the groups. Raises RefusedError and UnavailableError."""
    groups = flow.find_groups(issued, identity, subject=identity.subject, provider=provider())
    names = accounts.find_roles(groups or ())
    if issued.refresh_token is None:
        # The groups are checked by userinfo alone then, without the ID token.
        later = flow.Tokens(access_token=issued.access_token)
        found = flow.find_groups(later, None, subject=identity.subject, provider=provider())
        if found is None:
            raise RefusedError(Refusal.UNCHECKABLE)
    return names


def _confirm(
    request: HttpRequest,
    identity: Identity,
    issued: flow.Tokens,
    *,
    begun: dict[str, Any],
    now: datetime,
) -> HttpResponse:
    if sessions.subject_of(request) != identity.subject:
        raise RefusedError(Refusal.SUBJECT)
    at = identity.authenticated_at
    if at is None or at.timestamp() < begun["at"] - LEEWAY.total_seconds():
        raise RefusedError(Refusal.AUTH_TIME)
    # As strict as a sign-in: who may not sign in any more must not prolong a session instead.
    try:
        names = _find_roles(identity, issued)
        are_changed = accounts.apply_roles(request.user, names)
        sessions.renew(request, request.user.pk, identity, issued, now=now)
    except RefusedError as error:
        return end_session(request, error, target=reverse("admin:index"))
    if are_changed:
        sessions.record_roles(request.user.pk, names)
    mark_authenticated_at(request, at, now=now)
    sessions.record(request.user.pk, "Re-authenticated by the provider.")
    log.info("oidc_reauthenticated", user_id=str(request.user.pk))
    return render(request, "console/sign_in/oidc_confirmed.html", {"title": "Identity confirmed"})


def _record_refusal(identity: Identity, error: RefusedError, *, now: datetime) -> None:
    """Record that a person whom the provider authenticated may not sign in."""
    user = accounts.find_account(identity.subject)
    subject = identity.subject if "@" not in identity.subject else "unknown person"
    audit.record(
        by=system_client_id(now=now) if user is None else user.pk,
        model=StaffUser,
        object_id=subject if user is None else str(user.pk),
        name=subject if user is None else user.get_username(),
        message=f"Sign-in by the provider refused: {error.reason.value}.",
    )


def _refused(request: HttpRequest, error: RefusedError, *, target: str) -> HttpResponse:
    reason = error.reason
    log.warning("oidc_sign_in_refused", reason=reason.value, detail=error.detail)
    context = {
        "title": "Sign-in refused",
        "explanation": EXPLANATIONS.get(reason, OTHER_EXPLANATION),
        "code": reason.value,
        "target": target,
    }
    return render(request, "console/sign_in/oidc_refused.html", context, status=REFUSED_STATUS)


def _unavailable(request: HttpRequest, error: UnavailableError, *, target: str) -> HttpResponse:
    """Return the sign-in page, which says so and opens the form for a password.

    Staff who are signed in and confirm their identity get a page without a form.
    """
    log.warning("oidc_provider_unavailable", error=str(error))
    if request.user.is_authenticated:
        context = {
            "title": "Provider unavailable",
            "explanation": "The sign-in provider is unavailable. Close this tab, and try again in "
            "a minute.",
            "code": "unavailable",
        }
        template = "console/sign_in/oidc_refused.html"
        return render(request, template, context, status=UNAVAILABLE_STATUS)
    path = f"{reverse('admin:login')}?{urlencode({'next': target or reverse('admin:index')})}"
    response = admin.site.login(
        request, extra_context={"is_provider_unavailable": True, "app_path": path}
    )
    response.status_code = UNAVAILABLE_STATUS
    return response


def _redirect_uri() -> str:
    return f"{settings.PUBLIC_URL}{reverse(CALLBACK)}"


urlpatterns = [
    path("sign-in/", sign_in, name=SIGN_IN),
    path("callback/", callback, name=CALLBACK),
    path("reauthenticate/", admin.site.admin_view(reauthenticate), name=REAUTHENTICATE),
    path("back-channel-logout/", back_channel_logout, name=LOGOUT),
]
