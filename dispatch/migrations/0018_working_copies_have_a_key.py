from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dispatch', '0017_working_copies_count_their_changes'),
    ]

    operations = [
        migrations.AddField(
            model_name='workingcopy',
            name='key',
            field=models.CharField(blank=True, db_default='', default='', max_length=40),
        ),
    ]
