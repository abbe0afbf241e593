"""Django app configuration."""

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.core import checks
from django.db.models.signals import post_migrate


class AccessConfig(AppConfig):
    """The access app."""

    name = "access"
    verbose_name = "Access"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"

    def ready(self) -> None:
        """Register the system checks, and the receivers of migrations, sign-ins, and sign-outs."""
        from .checks import check_inbox_signing_key, check_oidc
        from .staff.oidc.sessions import delete_session
        from .staff.permissions import rename_stored_permissions
        from .staff.reauthentication import mark_signed_in

        checks.register(check_inbox_signing_key, checks.Tags.security)
        checks.register(check_oidc, checks.Tags.security)
        post_migrate.connect(rename_stored_permissions)
        user_logged_in.connect(mark_signed_in)
        user_logged_out.connect(delete_session)
