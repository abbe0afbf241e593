import notifyproject.db.indexes
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('recipients', '0005_keyed_suppressions'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='recipient',
            index=notifyproject.db.indexes.MongoIndex('~name', name='rcp_name'),
        ),
    ]
