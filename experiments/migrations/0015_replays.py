from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("experiments", "0014_background_tasks")]

    operations = [
        migrations.AddField(
            model_name="prediction",
            name="calibration",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="Of a replay: the trial that was replayed, the constants of its links, what was assumed.",
            ),
        ),
        migrations.AlterField(
            model_name="prediction",
            name="predictor",
            field=models.CharField(choices=[("fit", "Fit"), ("replay", "Replay")], default="fit", max_length=10),
        ),
        migrations.AlterField(
            model_name="backgroundtask",
            name="kind",
            field=models.CharField(
                choices=[("export", "Export"), ("change", "Change"), ("replay", "Replay")], max_length=8
            ),
        ),
    ]
