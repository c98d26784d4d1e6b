# %% [markdown]
# # Results for a paper
# A table with units and one archive that others can check and import. `SLUG` is the address of a finished experiment.

# %%
import os
from pathlib import Path

from rankwire_client import Client

client = Client()
slug = os.environ.get("SLUG") or next(client.experiments())["slug"]
directory = Path(os.environ.get("DIRECTORY", "."))

# %% [markdown]
# Medians of the configurations, for the text; the server's catalogue of metrics has the units. All trials as CSV.

# %%
configurations = client.frame(rows="configurations", experiment=slug)
print(configurations)
fastest = next(client.configurations(experiment=slug, metrics="elapsed_s", ordering="metric:elapsed_s"))
print(fastest["parameters"], fastest["metrics"]["elapsed_s"])
client.table(directory / f"{slug}.csv", experiment=slug)

# %% [markdown]
# Specification, environment, numbers and outputs as one RO-Crate, without packets. A dry run of its import shows the contents.

# %%
bundle = client.bundle(slug, directory / f"{slug}.zip", captures="none", licence="CC-BY-4.0")
print(client.import_(bundle, dry_run=True))
