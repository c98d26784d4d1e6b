from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("experiments", "0020_notices"),
    ]

    operations = [
        migrations.AddField(
            model_name="experiment",
            name="archived_at",
            field=models.DateTimeField(blank=True, editable=False, help_text="Since then in no list.", null=True),
        ),
    ]
