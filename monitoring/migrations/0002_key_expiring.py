from django.db import migrations, models

KINDS = [('failures', 'Failures'), ('breaker_open', 'Breaker open'), ('work_overdue', 'Work overdue'), ('sweep_overdue', 'Sweep overdue'), ('provider_paused', 'Provider paused'), ('callback_disabled', 'Callback disabled'), ('key_expiring', 'Key expiring')]


class Migration(migrations.Migration):

    dependencies = [
        ('analytics', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name=model,
            name='kind',
            field=models.CharField(choices=KINDS, max_length=40),
        )
        for model in ('alertrule', 'incident')
    ]
