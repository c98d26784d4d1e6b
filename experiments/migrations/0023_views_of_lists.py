from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("experiments", "0022_archived_experiments"),
    ]

    operations = [
        migrations.AddField(
            model_name="savedview",
            name="page",
            field=models.CharField(
                choices=[
                    ("explore", "Explore"),
                    ("experiments", "Experiments"),
                    ("trials", "Trials"),
                    ("histories", "Histories"),
                ],
                default="explore",
                max_length=20,
            ),
        ),
        migrations.RemoveConstraint(model_name="savedview", name="one_view_per_name"),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(fields=("owner", "page", "name"), name="one_view_per_name"),
        ),
    ]
