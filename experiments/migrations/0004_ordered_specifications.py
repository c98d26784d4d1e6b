"""Keep the written order of the fields and the sweep of a specification."""

from django.db import migrations

import experiments.models.ordered_json


class Migration(migrations.Migration):
    dependencies = [("experiments", "0003_explorer")]

    operations = [
        migrations.AlterField(
            model_name="experiment",
            name="specification",
            field=experiments.models.ordered_json.OrderedJSONField(default=dict),
        ),
        migrations.AlterField(
            model_name="experimentversion",
            name="specification",
            field=experiments.models.ordered_json.OrderedJSONField(),
        ),
    ]
