import django_mongodb_backend.fields
from django.db import migrations, models

EVENTS = [
    ('delivery.sent', 'Delivery.sent'),
    ('delivery.delivered', 'Delivery.delivered'),
    ('delivery.read', 'Delivery.read'),
    ('delivery.failed', 'Delivery.failed'),
    ('delivery.unknown', 'Delivery.unknown'),
    ('delivery.suppressed', 'Delivery.suppressed'),
    ('delivery.expired', 'Delivery.expired'),
    ('delivery.cancelled', 'Delivery.cancelled'),
    ('delivery.merged', 'Delivery.merged'),
    ('notification.completed', 'Notification.completed'),
    ('notification.acted', 'Notification.acted'),
    ('test', 'Test'),
]


class Migration(migrations.Migration):

    dependencies = [
        ('callbacks', '0003_notification_acted'),
    ]

    operations = [
        migrations.AlterField(
            model_name='callback',
            name='events',
            field=django_mongodb_backend.fields.ArrayField(
                base_field=models.CharField(choices=EVENTS, max_length=40), blank=True, default=list
            ),
        ),
        migrations.AlterField(
            model_name='callbackmessage',
            name='type',
            field=models.CharField(choices=EVENTS, max_length=40),
        ),
    ]
