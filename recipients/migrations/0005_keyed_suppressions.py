import re
from typing import Any

from django.db import connections, migrations

from notifyproject.platform import encryption

UNKEYED = re.compile(r"^[a-z_]+:[0-9a-f]{64}$")


def keyed_forms(unkeyed: str) -> list[str]:
    """Return the keyed forms of an unkeyed suppression key, the first key's first."""
    channel, _, digest = unkeyed.partition(":")
    digests = encryption.keyed_digests(digest.encode(), associated_data=f"suppression {channel}")
    return [f"{channel}:k1-{one}" for one in digests]


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
