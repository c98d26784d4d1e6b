"""End checks of clusters that no worker started; an empty worker means waiting."""

from typing import Any

from django.db import migrations


def end_unstarted(apps: Any, _editor: Any) -> None:
    unstarted = apps.get_model("experiments", "ClusterTest").objects.filter(worker="", begun_at=None)
    unstarted.exclude(ended_at=None).update(worker="cancelled")


class Migration(migrations.Migration):
    dependencies = [("experiments", "0040_search_rounds")]

    operations = [migrations.RunPython(end_unstarted, migrations.RunPython.noop)]
