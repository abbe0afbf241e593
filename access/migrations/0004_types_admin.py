import django_mongodb_backend.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('access', '0003_notifications_critical'),
    ]

    operations = [
        migrations.AlterField(
            model_name='apiclient',
            name='scopes',
            field=django_mongodb_backend.fields.ArrayField(base_field=models.CharField(choices=[('notifications:read', 'Notifications:read'), ('notifications:write', 'Notifications:write'), ('notifications:resend', 'Notifications:resend'), ('notifications:critical', 'Notifications:critical'), ('recipients:read', 'Recipients:read'), ('recipients:write', 'Recipients:write'), ('devices:write', 'Devices:write'), ('inbox:issue', 'Inbox:issue'), ('suppressions:write', 'Suppressions:write'), ('callbacks:write', 'Callbacks:write'), ('templates:write', 'Templates:write'), ('types:admin', 'Types:admin'), ('admin', 'Admin')], max_length=40), blank=True, default=list),
        ),
    ]
