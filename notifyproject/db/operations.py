"""Where the backend is told which compilers to use and how to escape a pattern."""

from django_mongodb_backend.operations import (
    DatabaseOperations as MongoDatabaseOperations,
)


class DatabaseOperations(MongoDatabaseOperations):
    """Compile with :mod:`notifyproject.db.compiler` and escape what ``iexact`` is given."""

    compiler_module = "notifyproject.db.compiler"

    def prep_for_iexact_query(self, x: str) -> str:
        """Escape ``x``: the backend passes it to a regular expression as it came."""
        return self.prep_for_like_query(x)
