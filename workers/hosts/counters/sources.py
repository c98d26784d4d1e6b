"""All sources, in the order in which they are listed."""

from __future__ import annotations

from workers.hosts.counters.board import Ipmi, Papi, Slurm
from workers.hosts.counters.cray import Cray
from workers.hosts.counters.ethernet import Drivers, Ethernet
from workers.hosts.counters.filesystems import Lustre, Nfs
from workers.hosts.counters.gpu import Amdgpu, Nvml, Rocm
from workers.hosts.counters.ports import Ports, Slingshot
from workers.hosts.counters.processor import Frequency, Temperature, Throttling
from workers.hosts.counters.rapl import Rapl
from workers.hosts.counters.source import Source

SOURCES: tuple[type[Source], ...] = (
    *(Rapl, Cray, Ipmi, Slurm),
    *(Ports, Slingshot, Ethernet, Drivers),
    *(Frequency, Throttling, Temperature),
    *(Nvml, Rocm, Amdgpu),
    *(Nfs, Lustre, Papi),
)
