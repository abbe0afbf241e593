
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('callbacks', '0001_initial'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='callback',
            options={'ordering': ('client_id',), 'permissions': (('switch_callback', 'Can disable and enable callback endpoints'),)},
        ),
        migrations.AlterModelOptions(
            name='callbackmessage',
            options={'ordering': ('-created_at', '-id'), 'permissions': (('replay_callbackmessage', 'Can replay callback messages'),), 'verbose_name': 'callback message'},
        ),
    ]
