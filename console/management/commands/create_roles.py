"""``manage.py create_roles``: the default roles of staff."""

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management.base import BaseCommand, CommandError, CommandParser

from access.staff.permissions import Role, roles

from ...staff.accounts import console_permissions


class Command(BaseCommand):
    """Create the default roles. Existing roles get missing permissions and lose none."""

    help = "Create the roles viewer, support, operator and admin, or add their missing permissions."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--reset", action="store_true", help="give each role exactly its default permissions"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the roles."""
        permissions = list(console_permissions())
        kinds = ContentType.objects.in_bulk({p.content_type_id for p in permissions})
        known = {f"{kinds[p.content_type_id].app_label}.{p.codename}": p for p in permissions}
        for role in roles(known):
            missing = sorted(role.permissions - known.keys())
            if missing:
                raise CommandError(f"Not stored: {', '.join(missing)}. Run migrate first.")
            own = [known[name] for name in sorted(role.permissions)]
            self._store(role, own, reset=options["reset"])

    def _store(self, role: Role, permissions: list[Permission], *, reset: bool) -> None:
        group, is_new = Group.objects.get_or_create(name=role.name)
        if reset:
            group.permissions.set(permissions)
        else:
            group.permissions.add(*permissions)
        state = "created" if is_new else "reset" if reset else "complete"
        self.stdout.write(f"{role.name}: {state}, {len(permissions)} permissions")
