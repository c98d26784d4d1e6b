"""Keep one control run in stored specifications, in which `true` meant one."""

import hashlib
import json
from typing import Any

from django.db import migrations


def name_the_number(apps: Any, _editor: Any) -> None:
    for name in ("Experiment", "ExperimentVersion"):
        rows = apps.get_model("experiments", name).objects
        stored = rows.extra(where=["specification ->> 'control' = 'true'"]).values_list("pk", "specification")
        for key, specification in stored:
            changed = {**specification, "control": 1}
            digest = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()
            field = "specification_hash" if name == "Experiment" else "hash"
            rows.filter(pk=key).update(specification=changed, **{field: digest})


class Migration(migrations.Migration):
    dependencies = [("experiments", "0036_clones")]

    operations = [migrations.RunPython(name_the_number, migrations.RunPython.noop)]
