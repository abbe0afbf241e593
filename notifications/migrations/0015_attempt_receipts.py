from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0014_client_scheduled'),
    ]

    operations = [
        # Missing in documents that were written before: nothing is to be rewritten.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name='deliveryattempt',
                    name='platform',
                    field=models.CharField(blank=True, max_length=16, null=True),
                ),
                migrations.AddField(
                    model_name='deliveryattempt',
                    name='delivered_at',
                    field=models.DateTimeField(blank=True, null=True),
                ),
                migrations.AddField(
                    model_name='deliveryattempt',
                    name='opened_at',
                    field=models.DateTimeField(blank=True, null=True),
                ),
            ],
        ),
    ]
