"""A walk for whoever runs the service: serve a dataset, give tokens, watch it and back it up."""

# %% [markdown]
# # The platform engineer
# Serve a dataset on one machine, give an analyst a token, look at what happens, and back the ledger up.
# All data here are made up and lie in an empty folder.

# %%
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sulq
from sulq import Epsilon

visits = pa.table({"patient": [i // 3 for i in range(9_000)], "ward": ["north", "south", "east"] * 3_000})
pq.write_table(visits, "visits.parquet")
Path("sulq.toml").write_text(
    """
[server]
port = 0  # any that is free

[dataset.visits]
data = "visits.parquet"
ledger = "visits.ledger"
unit = { column = "patient", rows = 3 }
budget = { epsilon = 3 }

[dataset.visits.columns]
ward = { category = ["north", "south", "east"] }
"""
)
COMMAND = str(Path(sys.executable).with_name("sulq"))
PLAIN = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}


def sulq_prints(*words: str) -> str:
    """What a command prints."""
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, check=True, env=PLAIN).stdout.strip()


# %% [markdown]
# ## Who may ask
# A token is printed once and kept as a hash. A grant names its datasets; without one an analyst sees none.

# %%
owner = sulq_prints("analyst", "add", "olga", "--role", "owner").split()[-1]
analyst = sulq_prints("analyst", "add", "ann", "--role", "analyst", "--dataset", "visits").split()[-1]
print(sulq_prints("analyst", "list"))

# %% [markdown]
# ## The server
# One command starts its processes: one answers HTTP, one holds the ledger, one sees the rows, one runs jobs.

# %%
server = subprocess.Popen([COMMAND, "serve"], stderr=subprocess.PIPE, text=True)
for line in server.stderr:
    if found := re.search(r"sulq serves (http://\S+)", line):
        url = found[1]
        break


def reads(path: str, token: str) -> str:
    """What the server replies to a GET."""
    call = urllib.request.Request(f"{url}{path}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(call, timeout=60) as reply:
        return reply.read().decode()


with sulq.connect(f"{url}/visits", token=analyst) as db:
    print(db.count(by="ward", spend=Epsilon(0.5)))

# %% [markdown]
# ## Is it well?
# `/v1/live` says that the process answers, `/v1/ready` that every dataset can be asked now; an owner is told which
# cannot, and why. Metrics are in Prometheus' format; the access log has every ask and every administrative act.

# %%
print(reads("/v1/ready", owner))
print([line for line in reads("/v1/metrics", owner).splitlines() if line.startswith("sulq_budget")])
print(json.loads(reads("/v1/access", owner))["entries"][-1])

# %% [markdown]
# ## Backup
# A backup is a whole ledger of the moment when it began; nobody waits for it. How it is put back, and what happens to
# debits that it does not know, is in docs/operate/backup.md.

# %%
print(sulq_prints("ledger", "backup", "visits.ledger", "visits.backup"))
print(sulq_prints("ledger", "verify", "visits.backup"))

# %%
server.send_signal(signal.SIGTERM)
server.stderr.close()
print(server.wait(30))
