from django.db import migrations

from notifyproject.db.collections import collection
from notifyproject.db.indexes import MongoIndex

INDEX = MongoIndex("user_id", "-_id", name="log_actor")


def create_index(apps, schema_editor):
    model = apps.get_model("admin", "LogEntry")
    found = INDEX.get_pymongo_index_model(model, schema_editor)
    collection(model._meta.db_table).create_indexes([found])


def drop_index(apps, _schema_editor):
    model = apps.get_model("admin", "LogEntry")
    collection(model._meta.db_table).drop_index(INDEX.name)


class Migration(migrations.Migration):
    dependencies = [("admin", "0002_search")]

    operations = [migrations.RunPython(create_index, drop_index)]
