from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0032_read_position'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='notificationtype',
            options={'ordering': ('slug',), 'permissions': (('weaken_notificationtype', 'Can weaken critical and sensitive types'),)},
        ),
    ]
