"""Keep one control run in stored specifications, in which `true` meant one."""

from typing import Any

from django.db import migrations


def name_the_number(apps: Any, _editor: Any) -> None:
    for name in ("Experiment", "ExperimentVersion"):
        rows = apps.get_model("experiments", name).objects
        stored = rows.extra(where=["specification ->> 'control' = 'true'"]).values_list("pk", "specification")
        for key, specification in stored:
            rows.filter(pk=key).update(specification={**specification, "control": 1})


class Migration(migrations.Migration):
    dependencies = [("experiments", "0036_clones")]

    operations = [migrations.RunPython(name_the_number, migrations.RunPython.noop)]
