"""The demo of the inbox elements, which only a local stack serves.

Tokens and notifications come from the stack's own REST API, as an app's backend would get them.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import urllib3
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_GET, require_POST

from ..settings.environment import BASE_DIR, CREDENTIALS_FILE
from .examples import API, ExampleRefusedError

PEOPLE: Mapping[str, str] = {"demo-ada": "Ada", "demo-grace": "Grace"}
MESSAGES = (
    (
        "order_shipped",
        "Your order has shipped",
        "Order 1042 arrives tomorrow.",
    ),
    ("system_alert", "Your export is ready", "The export of November has 12,480 rows."),
    (
        "payment_confirmed",
        "We have your payment",
        "49.90 for Sunrise.",
    ),
)
"""Type, subject, and body, sent in turn."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self' {stream}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html notify-push"
)
WORKER_POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'"
STATIC = Path(BASE_DIR, "static")
_pool = urllib3.PoolManager()


@require_GET
@ensure_csrf_cookie
def page(request: HttpRequest) -> HttpResponse:
    """Show both inboxes, and the code to copy."""
    bundle, button = _bundle("inbox"), _bundle("push-button")
    context = {
        "people": PEOPLE,
        "bundle": static(f"inbox/{bundle.name}"),
        "integrity": _integrity(bundle),
        "button": static(f"push-button/{button.name}"),
        "button_integrity": _integrity(button),
        "worker": static(f"push/{_bundle('push').name}"),
        "origin": settings.PUBLIC_URL,
    }
    response = render(request, "demo/inbox.html", context)
    response["Content-Security-Policy"] = POLICY.format(stream=settings.INBOX_STREAM_URL)
    return response


@require_GET
def push_worker(_request: HttpRequest) -> HttpResponse:
    """Answer as an app's own file, since a browser takes no worker from another origin."""
    worker = static(f"push/{_bundle('push').name}")
    response = HttpResponse(f'importScripts("{worker}");\n', content_type="text/javascript")
    response["Content-Security-Policy"] = WORKER_POLICY
    return response


@require_GET
def token(_request: HttpRequest, user_id: str) -> HttpResponse:
    """Answer as an app's backend: the response of ``POST /inbox/tokens``, unchanged."""
    return _answer(user_id, lambda api: api.call("POST", "/inbox/tokens", {"user_id": user_id}))


@require_POST
def send(_request: HttpRequest, user_id: str) -> HttpResponse:
    """Send a person the next of a few messages to the inbox."""
    return _answer(user_id, lambda api: _send_next(api, user_id, channel="in_app"))


@require_POST
def send_push(_request: HttpRequest, user_id: str) -> HttpResponse:
    """Send a person the next of a few messages as a push."""
    return _answer(user_id, lambda api: _send_next(api, user_id, channel="push"))


def _send_next(api: API, user_id: str, *, channel: str) -> dict[str, Any]:
    count = len(api.call("GET", f"/recipients/{user_id}/notifications?limit=100")["results"])
    slug, subject, body = MESSAGES[count % len(MESSAGES)]
    content = {"subject": subject, "body": body}
    request = {"type": slug, "user_id": user_id, "channels": [channel], "content": content}
    return {"id": api.call("POST", "/notifications", request)["id"]}


def _answer(user_id: str, ask: Callable[[API], dict[str, Any]]) -> HttpResponse:
    if user_id not in PEOPLE:
        return JsonResponse({"detail": "No such person."}, status=404)
    try:
        key = json.loads(CREDENTIALS_FILE.read_text())["api_key"]
        api = API(base_url=settings.PUBLIC_URL, key=key, pool=_pool, sandbox="")
        return JsonResponse(ask(api))
    except FileNotFoundError:
        return JsonResponse({"detail": "The stack is still starting."}, status=503)
    except (ExampleRefusedError, urllib3.exceptions.HTTPError) as error:
        return JsonResponse({"detail": f"The API refused it: {error}"}, status=502)


def _bundle(name: str) -> Path:
    return next(Path(STATIC, name).glob("*.js"))


@lru_cache(maxsize=4)
def _integrity(bundle: Path) -> str:
    return "sha384-" + base64.b64encode(hashlib.sha384(bundle.read_bytes()).digest()).decode()
