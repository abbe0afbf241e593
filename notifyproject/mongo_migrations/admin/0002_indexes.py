from django.db import migrations

from notifyproject.db.collections import collection
from notifyproject.db.indexes import MongoIndex

INDEXES = (
    MongoIndex("object_id", "-_id", name="log_object"),
    MongoIndex("object_repr", "-_id", name="log_name"),
    MongoIndex("part_of", "-_id", name="log_direct"),
    MongoIndex("user_id", "-_id", name="log_actor"),
)


def create_indexes(apps, schema_editor):
    model = apps.get_model("admin", "LogEntry")
    found = [index.get_pymongo_index_model(model, schema_editor) for index in INDEXES]
    collection(model._meta.db_table).create_indexes(found)


def drop_indexes(apps, _schema_editor):
    model = apps.get_model("admin", "LogEntry")
    for index in INDEXES:
        collection(model._meta.db_table).drop_index(index.name)


class Migration(migrations.Migration):
    dependencies = [("admin", "0001_initial")]

    operations = [migrations.RunPython(create_indexes, drop_indexes)]
