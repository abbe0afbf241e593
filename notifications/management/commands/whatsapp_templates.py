"""``manage.py whatsapp_templates push|status``: submits WhatsApp templates, or lists them."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from domain.errors import ProviderError

from ...catalog import whatsapp_templates
from ...catalog.whatsapp_templates import NOT_SUBMITTED, NoAccountError, TypeTemplate

TIMEOUT_SECONDS = 30.0
STATUS, PUSH = "status", "push"


class Command(BaseCommand):
    """Lists the WhatsApp templates of active types, and submits those that Meta doesn't know."""

    help = (
        "status: list the WhatsApp templates of active types and their status at Meta. push: "
        "submit those with a wording that Meta doesn't know; without --yes, nothing is submitted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("action", choices=[PUSH, STATUS])
        parser.add_argument("--type", metavar="SLUG", help="only the templates of this type")
        parser.add_argument("--yes", action="store_true", help="submit the templates")

    def handle(self, *args: Any, **options: Any) -> None:
        """List the templates or submit them."""
        try:
            found = whatsapp_templates.read_templates(
                type_slug=options["type"], timeout=TIMEOUT_SECONDS
            )
        except (NoAccountError, ProviderError) as error:
            raise CommandError(str(error)) from error
        if options["action"] == STATUS:
            for template in found:
                self._print(template, template.status, template.reason)
            return
        chosen = [template for template in found if template.can_be_submitted]
        for template in found:
            if template.status == NOT_SUBMITTED and template.submission is None:
                self._print(template, "no wording", "Submit it in WhatsApp Manager.")
        failed = sum(not self._push(template, is_real=options["yes"]) for template in chosen)
        if failed:
            raise CommandError(f"{failed} of {len(chosen)} templates weren't submitted.")
        if not options["yes"]:
            self.stdout.write(f"{len(chosen)} to submit. Nothing was changed; submit with --yes.")
        else:
            self.stdout.write(f"{len(chosen)} submitted.")

    def _push(self, template: TypeTemplate, *, is_real: bool) -> bool:
        if not is_real:
            self._print(template, "to submit")
            return True
        try:
            submitted = whatsapp_templates.submit(template, timeout=TIMEOUT_SECONDS)
        except ProviderError as error:
            self._print(template, "not submitted", str(error))
            return False
        self._print(template, submitted.status, submitted.reason)
        return True

    def _print(self, template: TypeTemplate, status: str, reason: str = "") -> None:
        where = f"{template.type_slug}: {template.name} ({template.language})"
        self.stdout.write(f"{where}: {status}" + (f", {reason}" if reason else ""))
