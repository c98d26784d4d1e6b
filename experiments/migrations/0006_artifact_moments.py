"""Date artifacts by the database's clock, as trials are, instead of the worker's."""

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("experiments", "0005_flagged_traffic")]

    operations = [
        migrations.AlterField(
            model_name="artifact",
            name="created_at",
            field=models.DateTimeField(
                db_default=Now(),
                editable=False,
                help_text="By the database's clock: retention must not believe a worker's.",
            ),
        ),
    ]
