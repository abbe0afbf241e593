"""Django's entry point to the engine: ``DATABASES["default"]["ENGINE"] = "notifyproject.db"``."""

from django.db.models.expressions import ColPairs
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
