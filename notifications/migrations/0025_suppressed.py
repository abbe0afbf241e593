from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0024_erased_digests'),
    ]

    operations = [
        migrations.AlterField(
            model_name='notification',
            name='status',
            field=models.CharField(choices=[('created', 'Created'), ('queued', 'Queued'), ('processing', 'Processing'), ('retrying', 'Retrying'), ('sent', 'Sent'), ('delivered', 'Delivered'), ('partially_delivered', 'Partially delivered'), ('failed', 'Failed'), ('expired', 'Expired'), ('cancelled', 'Cancelled'), ('suppressed', 'Suppressed'), ('merged', 'Merged')], max_length=40),
        ),
    ]
