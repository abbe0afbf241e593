import notifyproject.db.indexes
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('recipients', '0003_permission_names'),
    ]

    operations = [
        migrations.RemoveIndex(model_name='recipient', name='rcp_email'),
        migrations.RemoveIndex(model_name='recipient', name='rcp_phone'),
        migrations.AddIndex(
            model_name='recipient',
            index=notifyproject.db.indexes.MongoIndex('email', '_id', name='rcp_email', partial={'email': {'$exists': True}}),
        ),
        migrations.AddIndex(
            model_name='recipient',
            index=notifyproject.db.indexes.MongoIndex('phone', '_id', name='rcp_phone', partial={'phone': {'$exists': True}}),
        ),
    ]
