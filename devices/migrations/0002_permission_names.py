
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0001_initial'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='device',
            options={'ordering': ('-last_seen', '-id'), 'permissions': (('deactivate_device', 'Can disable devices'), ('reactivate_device', 'Can enable devices'))},
        ),
    ]
