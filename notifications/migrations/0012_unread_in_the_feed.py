import notifyproject.db.indexes
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0011_source'),
    ]

    operations = [
        migrations.RemoveIndex(model_name='notification', name='ntf_user_feed'),
        migrations.AddIndex(
            model_name='notification',
            index=notifyproject.db.indexes.MongoIndex('user_id', '-created_at', '-_id', 'client_id', 'is_active', 'is_read', name='ntf_user_feed'),
        ),
    ]
