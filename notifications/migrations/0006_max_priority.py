from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0005_recipient_fields_given'),
    ]

    operations = [
        migrations.AddField(
            model_name='notificationtype',
            name='max_priority',
            field=models.CharField(blank=True, choices=[('critical', 'Critical'), ('high', 'High'), ('normal', 'Normal'), ('low', 'Low')], max_length=40, null=True),
        ),
    ]
