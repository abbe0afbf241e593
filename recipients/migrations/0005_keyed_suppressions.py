import re
from typing import Any

from django.db import connections, migrations

from recipients.suppressions import keyed_forms

UNKEYED = re.compile(r"^[a-z_]+:[0-9a-f]{64}$")


def add_keys(_apps: Any, schema_editor: Any) -> None:
    """Replace the unkeyed digests of addresses. A suppression applies at every moment."""
    suppressions = connections[schema_editor.connection.alias].get_collection("suppressions")
    for document in suppressions.find({"key": {"$regex": UNKEYED.pattern}}):
        forms = keyed_forms(document["key"])
        if not forms:
            # Without FIELD_ENCRYPTION_KEYS, the unkeyed form stays in use.
            return
        new_id = f"{forms[0]}:{document['reason']}"
        new = {**document, "_id": new_id, "key": forms[0]}
        suppressions.replace_one({"_id": new_id}, new, upsert=True)
        suppressions.delete_one({"_id": document["_id"]})


class Migration(migrations.Migration):

    dependencies = [
        ('recipients', '0004_address_order'),
    ]

    operations = [
        migrations.RunPython(add_keys, migrations.RunPython.noop),
    ]
