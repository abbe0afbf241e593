import notifyproject.db.indexes
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('recipients', '0006_name_search'),
    ]

    operations = [
        migrations.CreateModel(
            name='WhatsAppIdentity',
            fields=[
                ('id', models.CharField(db_column='_id', max_length=140, primary_key=True, serialize=False)),
                ('phone', models.CharField(max_length=16)),
                ('expires_at', models.DateTimeField()),
            ],
            options={
                'db_table': 'whatsapp_identities',
                'ordering': ('id',),
                'indexes': [notifyproject.db.indexes.MongoIndex('phone', name='wid_phone'), notifyproject.db.indexes.MongoIndex('expires_at', expire_after_seconds=0, name='wid_expires')],
            },
        ),
    ]
