import django_mongodb_backend.fields
import notifyproject.db.indexes
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0017_receipts'),
    ]

    operations = [
        # Missing in documents that were written before, which are deleted after 30 days.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='webhooklog',
                    name='search_keys',
                    field=django_mongodb_backend.fields.ArrayField(base_field=models.CharField(max_length=200), default=list, size=None),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name='webhooklog',
            index=notifyproject.db.indexes.MongoIndex('search_keys', '-_id', name='whk_search'),
        ),
    ]
