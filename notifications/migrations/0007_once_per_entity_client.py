import notifyproject.db.indexes
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0006_max_priority'),
    ]

    operations = [
        # First, so that a repeated notification is refused at any time.
        migrations.AddIndex(
            model_name='notification',
            index=notifyproject.db.indexes.MongoIndex('user_id', 'type', 'entity_id', 'client_id', 'is_test', name='ntf_once_per_entity_client', partial={'entity_id': {'$exists': True}, 'resent_from': None, 'user_id': {'$exists': True}}, unique=True),
        ),
        migrations.RemoveIndex(
            model_name='notification',
            name='ntf_once_per_entity',
        ),
    ]
