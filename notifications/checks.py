"""System checks: settings that would lose or misdirect notifications stop the start."""

from typing import Any

from django.conf import settings
from django.core import checks


@checks.register(checks.Tags.security, deploy=True)
def provider_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return what is missing before mail can leave for real."""
    problems: list[checks.CheckMessage] = []
    if "sendgrid" in settings.EMAIL_PROVIDERS and settings.SENDGRID_API_KEY == "SG.sandbox":
        problems.append(
            checks.Warning(
                "Mail goes to the sandbox: SENDGRID_API_KEY is not set.",
                hint="Set it, or EMAIL_PROVIDER=smtp and SMTP_HOST.",
                id="notifications.W001",
            )
        )
    if "sendgrid" in settings.EMAIL_PROVIDERS and not settings.SENDGRID_WEBHOOK_PUBLIC_KEY:
        problems.append(
            checks.Warning(
                "SendGrid's webhooks are refused: SENDGRID_WEBHOOK_PUBLIC_KEY is not set.",
                hint="Without them a bounce is never noticed. Copy the key from SendGrid.",
                id="notifications.W002",
            )
        )
    if not settings.PUBLIC_URL.startswith("https://"):
        problems.append(
            checks.Warning(
                "PUBLIC_URL is not https: mail programs offer no way out of marketing mail.",
                hint="One-click unsubscribing needs an https link (RFC 8058).",
                id="notifications.W003",
            )
        )
    return problems


@checks.register()
def celery_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return settings under which a killed worker would take its hints along."""
    problems: list[checks.CheckMessage] = []
    if not settings.CELERY_TASK_ACKS_LATE:
        problems.append(
            checks.Error("CELERY_TASK_ACKS_LATE must stay on.", id="notifications.E001")
        )
    if settings.CELERY_TASK_CREATE_MISSING_QUEUES:
        problems.append(
            checks.Error(
                "CELERY_TASK_CREATE_MISSING_QUEUES must stay off: nobody consumes such queues.",
                id="notifications.E002",
            )
        )
    return problems
