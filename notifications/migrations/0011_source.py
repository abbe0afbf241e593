import notifyproject.db.indexes
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0010_resolved_errors'),
    ]

    operations = [
        # Missing in documents that were written before: nothing is to be rewritten.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='notification',
                    name='source',
                    field=models.CharField(blank=True, max_length=64, null=True),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name='notification',
            index=notifyproject.db.indexes.MongoIndex('client_id', 'source', '-created_at', '-_id', name='ntf_source', partial={'source': {'$exists': True}}),
        ),
    ]
