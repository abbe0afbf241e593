"""Django's entry point to the engine: ``DATABASES["default"]["ENGINE"] = "notifyproject.db"``."""

from django.db.models.expressions import ColPairs
from django_mongodb_backend.base import DatabaseWrapper as MongoDatabaseWrapper

from .operations import DatabaseOperations
from .schema import DatabaseSchemaEditor

# A single-column foreign key reaches the backend as ColPairs of one column. Saying that it is
# simple turns the $expr of prefetch_related, which scans, into an indexable match.
ColPairs.is_simple_column = True


class DatabaseWrapper(MongoDatabaseWrapper):
    """The backend's wrapper with our operations and schema editor."""

    SchemaEditorClass = DatabaseSchemaEditor
    ops_class = DatabaseOperations
