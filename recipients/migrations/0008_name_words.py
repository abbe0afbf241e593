import re
import unicodedata

import notifyproject.db.indexes
from django.db import migrations, models
from django_mongodb_backend.fields import ArrayField
from pymongo import UpdateOne

from notifyproject.db.collections import collection

BATCH = 1_000
MAX_WORDS = 8
WORD = re.compile(r"\w+")


def name_words(text):
    """Return the words of a name without case and accents, as of this migration."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(one for one in plain if not unicodedata.combining(one))
    return list(dict.fromkeys(WORD.findall(letters)))[:MAX_WORDS]


def add_words(_apps, _schema_editor):
    recipients = collection("recipients")
    changes = []
    for one in recipients.find({"name": {"$type": "string"}}, {"name": 1}):
        words = {"$set": {"name_words": name_words(one["name"])}}
        # A name that changes meanwhile brings its own words.
        changes.append(UpdateOne({"_id": one["_id"], "name": one["name"]}, words))
        if len(changes) == BATCH:
            recipients.bulk_write(changes, ordered=False)
            changes = []
    if changes:
        recipients.bulk_write(changes, ordered=False)


class Migration(migrations.Migration):

    dependencies = [
        ('recipients', '0007_whatsapp_identities'),
    ]

    operations = [
        migrations.AddField(
            model_name='recipient',
            name='name_words',
            field=ArrayField(base_field=models.CharField(max_length=200), blank=True, null=True, size=None),
        ),
        migrations.AddIndex(
            model_name='recipient',
            index=notifyproject.db.indexes.MongoIndex('name_words', '_id', name='rcp_name_words', partial={'name_words': {'$exists': True}}),
        ),
        migrations.RunPython(add_words, migrations.RunPython.noop),
    ]
