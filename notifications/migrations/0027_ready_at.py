from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications', '0026_holds'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            # An embedded field needs no change of the database.
            state_operations=[
                migrations.AddField(
                    model_name='delivery',
                    name='ready_at',
                    field=models.DateTimeField(blank=True, null=True),
                ),
            ],
        ),
    ]
