"""Django's entry point to the engine: ``DATABASES["default"]["ENGINE"] = "notifyproject.db"``."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from django.core.exceptions import ImproperlyConfigured
from django.db.models.expressions import ColPairs


class _NoGeometry:
    """Finder of modules that reports GDAL as missing.

    The backend needs it for geometry fields only, and asks ldconfig and gcc for it four times:
    0.4 s of each start.
    """

    @staticmethod
    def find_spec(
        name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> None:
        """Raise what the backend expects without GDAL."""
        if name == "django.contrib.gis.gdal":
            raise ImproperlyConfigured("The service has no geometry fields.")


@contextmanager
def _without_geometry() -> Iterator[None]:
    sys.meta_path.insert(0, _NoGeometry)
    try:
        yield
    finally:
        sys.meta_path.remove(_NoGeometry)


with _without_geometry():
    from django_mongodb_backend import base, operations

    from .schema import DatabaseSchemaEditor

# A foreign key reaches the backend as ColPairs of one column. If that is a simple column,
# prefetch_related uses a match that an index serves, not an $expr that scans.
ColPairs.is_simple_column = True


class DatabaseOperations(operations.DatabaseOperations):
    """The backend's operations, with the compilers of :mod:`notifyproject.db.compiler`."""

    compiler_module = "notifyproject.db.compiler"

    def prep_for_iexact_query(self, x: str) -> str:
        """Escape ``x``: the backend puts it into a regular expression unchanged."""
        return self.prep_for_like_query(x)


class DatabaseWrapper(base.DatabaseWrapper):
    """The backend's wrapper, with these operations and the schema editor."""

    SchemaEditorClass = DatabaseSchemaEditor
    ops_class = DatabaseOperations
