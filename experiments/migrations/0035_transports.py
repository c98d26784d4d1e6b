"""State in environments of real hosts by which transport their trials ran.

Until now Open MPI ran over TCP there and other libraries as they chose. Clusters without the setting are `native` from now on:
the fact makes the change a step of each history.
"""

import hashlib
import json

from django.db import migrations

REAL_HOSTS = ("ssh", "slurm", "pbs", "lsf", "flux", "gridengine")


def state_transports(apps, schema_editor):
    environments = apps.get_model("experiments", "Environment")
    trials = apps.get_model("experiments", "Trial").objects.filter(
        cluster__kind__in=REAL_HOSTS, cluster__elsewhere=False, environment__isnull=False
    )
    for old in environments.objects.filter(pk__in=trials.values("environment")).exclude(facts__has_key="transport"):
        facts = {**old.facts, "transport": "tcp" if "Open MPI" in str(old.facts.get("mpi")) else "native"}
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        new, _ = environments.objects.get_or_create(hash=digest, defaults={"facts": facts})
        trials.filter(environment=old).update(environment=new)


class Migration(migrations.Migration):
    dependencies = [("experiments", "0034_measurements_of_each_trial")]

    operations = [migrations.RunPython(state_transports, migrations.RunPython.noop)]
