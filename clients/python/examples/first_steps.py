# %% [markdown]
# # First steps
# From a specification to the answer and its numbers: `pip install './clients/python[polars]'`, then set `RANKWIRE_URL`
# and `RANKWIRE_TOKEN` (page *Account*).

# %%
import polars as pl
from rankwire_client import Client

client = Client()

# %% [markdown]
# An experiment states a program, the values to sweep and the repetitions. The server reports each wrong field before it runs anything.

# %%
specification = {
    "name": "First steps",
    "workload": "water",
    "cluster": "testbed",
    "parameters": {"molecules": 64, "steps": 20},
    "sweep": {"hosts": [1, 2]},
    "repetitions": 2,
}
print(client.validate(specification)["notes"])
slug = client.submit(specification)["slug"]
over = client.wait(slug, progress=lambda state: print(state["status"], state["trials"]))

# %% [markdown]
# The answer is a sentence with a number, its uncertainty and its cause; `strength` rates the evidence.

# %%
answer = client.result(slug)["answer"]
print(answer["strength"], "-", answer["sentence"])

# %% [markdown]
# The server sorts and filters by metrics, among all of your trials or points. Here are the fastest trials, and the medians of the points.

# %%
for trial in client.trials(experiment=slug, metrics="elapsed_s,packets", ordering="metric:elapsed_s"):
    print(trial["id"], trial["hosts"], trial["metrics"])
for point in client.configurations(experiment=slug, metrics="elapsed_s", where="hosts <= 2"):
    print(point["hosts"], point["metrics"]["elapsed_s"])

# %% [markdown]
# Each trial is a row with every measurement, in base units.

# %%
trials = client.frame(experiment=slug)
print(trials.select("parameter.hosts", "repetition", "elapsed_s", "packets", "trust"))
print(trials.group_by("parameter.hosts").agg(pl.col("elapsed_s").median(), pl.len().alias("trials")))
