import notifyproject.db.indexes
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0013_delivery_earlier_attempts'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='notification',
            index=notifyproject.db.indexes.MongoIndex('client_id', 'status', 'scheduled_at', '_id', name='ntf_client_scheduled', partial={'scheduled_at': {'$exists': True}}),
        ),
    ]
