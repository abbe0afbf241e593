
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('recipients', '0002_people'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='recipient',
            options={'ordering': ('user_id',), 'permissions': (('erase_recipient', 'Can erase recipients'), ('export_recipient', 'Can export the data of recipients'), ('sign_out_recipient', 'Can revoke the inbox tokens of recipients'))},
        ),
    ]
