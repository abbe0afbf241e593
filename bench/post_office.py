"""The peer: django-post_office in its own Django project.

``python -m bench.post_office drain FOLDER MAIL COUNT BACKEND`` and ``… accept FOLDER COUNT`` print
their cost as JSON. ``bench.post_office:application()`` is a WSGI application that queues a mail for
each POST. BACKEND is Django's SMTP backend or SendGridBackend.

The database is SQLite with a write-ahead log and ``synchronous=FULL``: commits are durable, and no
database server takes CPU time from the peer.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
import msgspec
import urllib3
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.mail.backends.base import BaseEmailBackend
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path

from . import mail

SMTP = "django.core.mail.backends.smtp.EmailBackend"
SENDGRID = "bench.post_office.SendGridBackend"
WARM_UP = 200
THREADS, BATCH = 5, 1_000
"""Measured as the fastest: post_office's default of 5 threads, and batches larger than its 100."""


def cost_of(run: Callable[[], object]) -> dict[str, float]:
    """Run a function; return its wall time and CPU time in seconds."""
    began, cpu = time.perf_counter(), time.process_time()
    run()
    return {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}


class SendGridBackend(BaseEmailBackend):
    """A minimal mail backend for SendGrid: one connection per thread, no client library."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._http = urllib3.PoolManager(maxsize=1, retries=False)
        self._url = os.environ["SENDGRID_URL"] + "/v3/mail/send"

    def send_messages(self, email_messages: Any) -> int:
        """Post each mail and return their number. Raises RuntimeError unless all get a 202."""
        for message in email_messages:
            body = mail.sendgrid_body(
                message.from_email,
                subject=message.subject,
                text=message.body,
                html=message.alternatives[0][0],
                to=message.to[0],
            )
            answer = self._http.request(
                "POST",
                self._url,
                body=msgspec.json.encode(body),
                headers={"Authorization": "Bearer SG.peer", "Content-Type": "application/json"},
            )
            if answer.status != 202:
                raise RuntimeError(f"SendGrid answered with {answer.status}")
        return len(email_messages)


def configure(folder: Path, *, backend: str = SMTP) -> None:
    """Set up the project in a folder and create its tables."""
    settings.configure(
        INSTALLED_APPS=["django.contrib.contenttypes", "post_office"],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": folder / "post_office.sqlite3",
                "OPTIONS": {
                    "timeout": 60,
                    "transaction_mode": "IMMEDIATE",
                    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
                },
            }
        },
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DEFAULT_FROM_EMAIL="notifications@example.com",
        EMAIL_HOST=os.environ["SMTP_HOST"],
        EMAIL_PORT=int(os.environ["SMTP_PORT"]),
        EMAIL_BACKEND=backend,
        POST_OFFICE={"THREADS_PER_PROCESS": THREADS, "BATCH_SIZE": BATCH},
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
        ROOT_URLCONF="bench.post_office",
        ALLOWED_HOSTS=["127.0.0.1"],
        USE_TZ=True,
        SECRET_KEY="of-a-benchmark",
        LOGGING_CONFIG=None,
    )
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def fill(count: int, ready: mail.RenderedMail) -> None:
    """Queue ``count`` mails that are rendered already."""
    from post_office.models import PRIORITY, STATUS, Email

    Email.objects.bulk_create(
        (
            Email(
                from_email=ready.sender,
                to=[mail.address(number)],
                subject=ready.subject,
                message=ready.text,
                html_message=ready.html,
                status=STATUS.queued,
                priority=PRIORITY.medium,
            )
            for number in range(count)
        ),
        batch_size=mail.BATCH,
    )


def drain(folder: Path, path: str, count: str, backend: str) -> dict[str, float]:
    """Send ``count`` queued mails after a warm-up; return the cost."""
    configure(folder, backend=backend)
    from post_office.mail import send_queued_mail_until_done
    from post_office.models import STATUS, Email

    ready, lockfile = mail.RenderedMail.load(path), str(folder / "lock")
    fill(WARM_UP, ready)
    send_queued_mail_until_done(lockfile)
    fill(int(count), ready)
    cost = cost_of(lambda: send_queued_mail_until_done(lockfile))
    if Email.objects.exclude(status=STATUS.sent).exists():
        raise RuntimeError("post_office did not send everything")
    return cost


def send_view(request: HttpRequest) -> JsonResponse:
    """Queue one mail, rendered from a template."""
    from post_office.mail import send

    payload: dict[str, Any] = json.loads(request.body)
    queued = send(
        payload["recipient"]["email"],
        subject="Payment confirmed: order {{ order_id }}",
        message="Your payment of {{ amount }} for {{ video_title }} has arrived. Thank you.",
        context=payload["data"],
    )
    return JsonResponse({"id": queued.pk}, status=202)


urlpatterns = [path("", send_view)]


def application() -> WSGIHandler:
    """Return the WSGI application for gunicorn."""
    configure(Path(os.environ["POST_OFFICE_FOLDER"]))
    return get_wsgi_application()


def accept(folder: Path, count: str) -> dict[str, float]:
    """Queue ``count`` mails with send_many, in batches of 1,000; return the cost."""
    configure(folder)
    from post_office.mail import send_many

    messages = [
        {
            "recipients": [mail.address(number)],
            "subject": "Payment confirmed: order {{ order_id }}",
            "message": "Your payment of {{ amount }} for {{ video_title }} has arrived.",
            "context": {**mail.DATA, "order_id": number},
        }
        for number in range(int(count))
    ]

    batches = [messages[n : n + mail.BATCH] for n in range(0, len(messages), mail.BATCH)]
    return cost_of(lambda: list(map(send_many, batches)))


def main() -> None:
    """Run the command ``drain`` or ``accept`` and print its cost."""
    command, folder, *arguments = sys.argv[1:]
    commands: dict[str, Callable[..., object]] = {"drain": drain, "accept": accept}
    print(json.dumps(commands[command](Path(folder), *arguments)))


if __name__ == "__main__":
    main()
