"""``manage.py check_indexes``: compare the indexes in MongoDB with the declared ones."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ...db import index_drift


class Command(BaseCommand):
    """Compare indexes, and create missing ones with --create."""

    help = "Compare the indexes in MongoDB with those the models declare."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "--create",
            action="store_true",
            help="create missing indexes; MongoDB builds them while the collection is in use",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print differences; exit with 1 if any remain."""
        if options["create"]:
            for drift in index_drift.create_missing():
                self.stdout.write(f"{drift.collection}.{drift.name}: created")
        found = index_drift.find_drift()
        for drift in found:
            self.stdout.write(f"{drift.collection}.{drift.name}: {drift.problem}")
        if found:
            raise CommandError(_advice(found))
        self.stdout.write("Every index is as declared.")


def _advice(drifts: list[index_drift.Drift]) -> str:
    problems = {drift.problem for drift in drifts}
    advice = []
    if index_drift.Problem.MISSING in problems:
        advice.append("--create creates missing indexes.")
    if problems - {index_drift.Problem.MISSING}:
        advice.append("Drop different and undeclared indexes yourself, with dropIndex().")
    return " ".join(advice)
