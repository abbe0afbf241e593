"""Pages about what belongs to an app, with the app's name."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from notifyproject.db.admin import ReadOnlyAdmin

from .showing import names_of


class OfAnApp(ReadOnlyAdmin):
    """Rows that know their app by its id only."""

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the apps' names."""
        names = names_of({row.client_id for row in rows})
        for row in rows:
            row.app_name = names.get(row.client_id, str(row.client_id))

    def get_object(self, request: HttpRequest, *args: Any) -> Any:
        """Return one row with its app's name."""
        found = super().get_object(request, *args)
        if found is not None:
            self.prepare_rows(request, [found])
        return found

    @admin.display(description="App")
    def app(self, row: Any) -> str:
        """Whose it is."""
        return str(row.app_name)
