from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0002_permission_names'),
    ]

    operations = [
        # The primary key is the token's SHA-256, which is unique on every shard. A unique index on
        # another field would prevent sharding.
        migrations.RemoveIndex(model_name='device', name='dev_token'),
    ]
