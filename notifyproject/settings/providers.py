"""Settings of providers and of the sandbox."""

from typing import Any

from .environment import Environment, split_list


def configure(environment: Environment) -> dict[str, Any]:
    """Return the settings that depend on the environment."""
    return {
        **_email(environment),
        **_push_and_whatsapp(environment),
        "SANDBOX_URL": environment.SANDBOX_URL.rstrip("/"),
        "SANDBOX_FCM_CREDENTIALS": environment.SANDBOX_FCM_CREDENTIALS,
        "PROVIDER_RATES": _provider_rates(environment),
    }


def _email(environment: Environment) -> dict[str, Any]:
    has_key = bool(environment.SENDGRID_API_KEY)
    default_url = "https://api.sendgrid.com" if has_key else environment.SANDBOX_URL
    return {
        "EMAIL_PROVIDERS": tuple(environment.EMAIL_PROVIDER.split(",")),
        "EMAIL_FROM": environment.EMAIL_FROM,
        "EMAIL_REPLY_TO": environment.EMAIL_REPLY_TO or None,
        "ATTACHMENT_HOSTS": frozenset(split_list(environment.ATTACHMENT_HOSTS.lower())),
        "SENDGRID_API_KEY": environment.SENDGRID_API_KEY or "SG.sandbox",
        "SENDGRID_URL": (environment.SENDGRID_URL or default_url).rstrip("/"),
        "SENDGRID_WEBHOOK_PUBLIC_KEY": environment.SENDGRID_WEBHOOK_PUBLIC_KEY,
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": environment.SMTP_HOST,
        "EMAIL_PORT": environment.SMTP_PORT,
        "EMAIL_HOST_USER": environment.SMTP_USER,
        "EMAIL_HOST_PASSWORD": environment.SMTP_PASSWORD,
        "EMAIL_USE_TLS": environment.SMTP_SECURITY == "starttls",
        "EMAIL_USE_SSL": environment.SMTP_SECURITY == "tls",
        "EMAIL_TIMEOUT": 15,
    }


def _push_and_whatsapp(environment: Environment) -> dict[str, Any]:
    return {
        "FCM_CREDENTIALS": environment.FCM_CREDENTIALS,
        "FCM_PROJECT_ID": environment.FCM_PROJECT_ID,
        "FCM_URL": environment.FCM_URL.rstrip("/"),
        "WHATSAPP_TOKEN": environment.WHATSAPP_TOKEN,
        "WHATSAPP_PHONE_NUMBER_ID": environment.WHATSAPP_PHONE_NUMBER_ID,
        "WHATSAPP_APP_SECRET": environment.WHATSAPP_APP_SECRET,
        "WHATSAPP_VERIFY_TOKEN": environment.WHATSAPP_VERIFY_TOKEN,
        "WHATSAPP_URL": environment.WHATSAPP_URL.rstrip("/"),
        "WHATSAPP_API_VERSION": environment.WHATSAPP_API_VERSION,
    }


def _provider_rates(environment: Environment) -> dict[str, tuple[float, int]]:
    """Return rate per second and burst of the token bucket, for each provider with a limit.

    The burst is the rate of a tenth of a second: batches stay whole, and a provider that counts by
    the second hardly sees more than the rate.
    """
    rates = {
        "sendgrid": environment.SENDGRID_MAX_PER_SECOND,
        "smtp": environment.SMTP_MAX_PER_SECOND,
        "fcm": environment.FCM_MAX_PER_SECOND,
        "whatsapp": environment.WHATSAPP_MAX_PER_SECOND,
    }
    return {name: (rate, max(1, round(rate / 10))) for name, rate in rates.items() if rate > 0}
