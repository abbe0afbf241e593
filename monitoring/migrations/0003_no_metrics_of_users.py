from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('analytics', '0002_key_expiring'),
    ]

    operations = [
        migrations.RemoveIndex(model_name='metricsaggregate', name='met_user'),
    ]
