"""Catalogue of all metrics: source of pages, REST, CSV, command line and docs."""

# ruff: noqa: E501 - one metric per line reads as the table it is

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from analysis.numbers import SHARE

Direction = Literal["lower", "higher", "neutral"]
Section = Literal[
    "run",
    "energy",
    "fabric",
    "processor",
    "gpu",
    "files",
    "mpi",
    "volume",
    "interarrival",
    "tcp",
    "matrices",
    "trust",
    "legacy",
]
Shape = Literal["number", "curve", "table", "verdict"]

SECTION_TITLES: Final[dict[Section, str]] = {
    "run": "Run metrics (from the launcher, not from packets)",
    "energy": "Energy (from the meters of the hosts)",
    "fabric": "Fabric (from the counters of ports)",
    "processor": "Processor (from the counters of hosts and ranks)",
    "gpu": "GPU (from its driver)",
    "files": "Files (from the kernel's counters)",
    "mpi": "Inside MPI (from every rank's own calls, not from packets)",
    "volume": "Volume and rate",
    "interarrival": "Inter-arrival",
    "tcp": "TCP",
    "matrices": "Matrices",
    "trust": "Trust of the capture",
    "legacy": "The 2011 report",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """One catalogued quantity.

    ``unit`` is for display ("1" for a count or factor, SHARE for a ratio in per cent); the id has it as suffix.
    """

    id: str
    label: str
    unit: str
    direction: Direction
    definition: str
    source: str
    section: Section
    headline: bool = False
    """One of the six metrics of the published table."""
    shape: Shape = "number"
    """Numbers are in ``CaptureAnalysis.metrics``; curves and tables in the structure that the definition names."""


Row = tuple[str, str, str, Direction, str, str]


def _section(section: Section, rows: Iterable[Row], headline: tuple[str, ...] = ()) -> list[Metric]:
    return [Metric(*row, section=section, headline=row[0] in headline) for row in rows]


_OWN = "own definition"
_RUSAGE = "getrusage(2) of every rank, summed by the launcher's wrapper"
_INSIDE = "every rank's calls, by a library loaded into it"
_DELAY = f"{_INSIDE}; run delay: second number of /proc/thread-self/schedstat"
_CALLS = "every rank's calls (profile: trace) and the packets between the ranks"
_POP = "POP efficiencies, co-design.pop-coe.eu/metrics"
_RAPL = "energy_uj of /sys/class/powercap/intel-rapl*, or cpu_energy and memory_energy of /sys/cray/pm_counters"
_PORTS = "/sys/class/infiniband/*/ports/*/counters"
_HW_COUNTERS = "/sys/class/infiniband/*/ports/*/hw_counters, or those of the device"
_NET = "/sys/class/net/*/statistics of physical interfaces"
_NETWORKS = "counters of ports and interfaces; messages of the ranks' calls"
_NVML = "NVML (nvmlDevice...), or rocm-smi --json"
_PID_IO = "/proc/PID/io of every rank at its end"
_EVENTS = "perf_event_open(2) in each rank, in user mode; the thread that began MPI"
_WIRE = "frames of the capture, original length"
_CHAIN = "time stamps and lengths of TCP data, handshakes"
_TCPTRACE = "tcptrace 6.6 (Ostermann)"

# fmt: off
_RUN: Final[list[Row]] = [
    ("elapsed_s", "Elapsed time", "s", "lower", "Wall time of the MPI launch command.", "monotonic clock of the launcher"),
    ("start_end_s", "Launch overhead", "s", "lower", "elapsed_s - the program's own time of its work: start-up of the MPI run-time and of the program, and their end.", "elapsed_s and the program's output, where it states such a time"),
    ("start_end_share", "Share of launch overhead", "1", "lower", "start_end_s / elapsed_s.", "elapsed_s and the program's output, where it states such a time"),
    ("cpu_user_s", "CPU time, user", "s", "lower", "User CPU time summed over ranks.", _RUSAGE),
    ("cpu_system_s", "CPU time, system", "s", "lower", "System CPU time summed over ranks.", _RUSAGE),
    ("cpu_s", "CPU time", "s", "lower", "User and system CPU time summed over ranks.", _RUSAGE),
    ("cpu_mean_rank_s", "CPU time per rank", "s", "lower", "User and system CPU time, mean over ranks.", _RUSAGE),
    ("cpu_max_rank_s", "CPU time, busiest rank", "s", "lower", "Largest CPU time of any rank.", _RUSAGE),
    ("cpu_imbalance", "CPU imbalance", SHARE, "lower", "Largest CPU time of a rank / mean over ranks - 1.", _RUSAGE),
    ("cpu_utilisation", "CPU utilisation", SHARE, "higher", "cpu_s / (elapsed_s x ranks).", _RUSAGE),
    ("max_rss_bytes", "Largest resident set", "B", "lower", "Largest resident set of any rank.", _RUSAGE),
    ("context_switches_voluntary", "Context switches, voluntary", "1", "neutral", "Times a rank gave up its CPU core to wait, summed over ranks.", _RUSAGE),
    ("context_switches_involuntary", "Context switches, involuntary", "1", "lower", "Times a rank lost its CPU core to another, summed over ranks.", _RUSAGE),
    ("host_cpu_user_share", "Host CPU, user", SHARE, "neutral", "Share of the host's CPU time in user mode, sampled at 1 Hz.", "/proc/stat of each host"),
    ("host_cpu_system_share", "Host CPU, system", SHARE, "lower", "Share of the host's CPU time in the kernel, sampled at 1 Hz.", "/proc/stat of each host"),
]

_MPI: Final[list[Row]] = [
    ("mpi_window_s", "MPI window", "s", "lower", "The longest window of any rank, from the end of MPI_Init to the start of MPI_Finalize.", _INSIDE),
    ("mpi_useful_s", "Useful time", "s", "lower", "Time outside MPI in the window, summed over ranks.", _INSIDE),
    ("mpi_useful_max_rank_s", "Useful time, busiest rank", "s", "lower", "Largest time outside MPI of any rank.", _INSIDE),
    ("mpi_busiest_rank", "Busiest rank", "1", "neutral", "Number of the rank with the largest time outside MPI: the one that others wait for.", _INSIDE),
    ("mpi_busiest_computing_s", "Computing of the busiest rank", "s", "lower", "Time outside MPI on a CPU core, of the busiest rank.", _INSIDE),
    ("mpi_busiest_descheduled_s", "Descheduled outside MPI, busiest rank", "s", "lower", "Run delay outside MPI, of the busiest rank: it was runnable and had no CPU core.", _DELAY),
    ("mpi_parallel_efficiency", "Parallel efficiency", SHARE, "higher", "mpi_load_balance x mpi_communication_efficiency: mean time of a rank outside MPI / mpi_window_s.", _POP),
    ("mpi_load_balance", "Load balance", SHARE, "higher", "Mean / largest time of a rank outside MPI, in the window.", _POP),
    ("mpi_communication_efficiency", "Communication efficiency", SHARE, "higher", "Largest time of a rank outside MPI / mpi_window_s.", _POP),
    ("mpi_serialisation_efficiency", "Serialisation efficiency", SHARE, "higher", "mpi_communication_efficiency on an ideal network, measured by ideal-network runs on an unlimited link without delay.", _POP),
    ("mpi_transfer_efficiency", "Transfer efficiency", SHARE, "higher", "mpi_window_s on an ideal network / mpi_window_s; times mpi_serialisation_efficiency it is mpi_communication_efficiency.", _POP),
    ("mpi_useful_share", "Computing", SHARE, "higher", "Time outside MPI on a CPU core / windows of all ranks; the first of the four shares that add up to 1.", _INSIDE),
    ("mpi_no_core_share", "Outside MPI, off the CPU", SHARE, "lower", "Time outside MPI in which the thread was off the CPU / windows of all ranks: mpi_descheduled_share + mpi_blocked_outside_share.", _INSIDE),
    ("mpi_descheduled_share", "Descheduled outside MPI", SHARE, "lower", "Run delay outside MPI / windows of all ranks: the thread was runnable and had no CPU core.", _DELAY),
    ("mpi_blocked_outside_share", "Blocked outside MPI", SHARE, "lower", "Time outside MPI in which the thread was off the CPU and not runnable / windows of all ranks: sleep, files, locks.", _DELAY),
    ("mpi_descheduled_inside_share", "In MPI, descheduled", SHARE, "lower", "Run delay inside MPI / windows of all ranks: the thread was runnable and had no CPU core; a part of mpi_blocked_share.", _DELAY),
    ("mpi_on_cpu_share", "In MPI, on CPU", SHARE, "lower", "Time inside MPI on a CPU core / windows of all ranks.", _INSIDE),
    ("mpi_blocked_share", "In MPI, off the CPU", SHARE, "lower", "Time inside MPI in which the thread was off the CPU / windows of all ranks: mpi_descheduled_inside_share, and blocked (not runnable) while it waits for a message.", _INSIDE),
    ("mpi_point_to_point_share", "In point-to-point calls", SHARE, "neutral", "Time inside sends, receives and probes / windows of all ranks.", _INSIDE),
    ("mpi_collective_share", "In collective calls", SHARE, "neutral", "Time inside collectives that move data / windows of all ranks.", _INSIDE),
    ("mpi_synchronisation_share", "In barriers and communicators", SHARE, "neutral", "Time inside barriers and calls that make or free communicators / windows of all ranks.", _INSIDE),
    ("mpi_waiting_share", "In wait and test", SHARE, "neutral", "Time inside the calls that wait or test for requests / windows of all ranks.", _INSIDE),
    ("mpi_one_sided_share", "In one-sided calls", SHARE, "neutral", "Time inside calls on windows / windows of all ranks.", _INSIDE),
    ("mpi_input_output_share", "In MPI input and output", SHARE, "neutral", "Time inside calls on files / windows of all ranks.", _INSIDE),
    ("mpi_calls", "MPI calls", "1", "neutral", "Calls of the functions that are counted, all ranks and threads; what the library calls itself is not counted.", _INSIDE),
    ("mpi_messages", "Messages", "1", "neutral", "Point-to-point messages that the program sent, on any network.", f"{_INSIDE}; Open MPI's monitoring component"),
    ("mpi_sent_bytes", "Bytes of messages", "B", "neutral", "Payload of these messages, as the program requested.", f"{_INSIDE}; Open MPI's monitoring component"),
    ("mpi_collective_bytes", "Bytes of collectives", "B", "neutral", "Bytes passed to collectives by each rank: count x size of the type.", _INSIDE),
    ("mpi_profile_cost_share", "Profiling overhead", SHARE, "lower", "(Calls x time that counting one takes + readings of counters x time of one), both measured in each rank at its start / windows of all ranks.", "empty calls, the fastest of eight rows of 32 in each rank"),
    ("mpi_wait_share", "Long waits", SHARE, "lower", "Receives, waits and collectives of at least 50 us, and sends blocked by a closed window / windows of all ranks.", _CALLS),
    ("mpi_wait_late_sender_share", "Waits for a late sender", SHARE, "neutral", "Until the sender's call began, or the last rank of a collective came, while that rank had a CPU core, of the time in long waits; the first of eight shares that add up to 1.", _CALLS),
    ("mpi_wait_line_rate_share", "Waits at line rate", SHARE, "neutral", "What the link's rate takes for the frames that passed the two ports after the sender had handed over, of the time in long waits.", _CALLS),
    ("mpi_wait_under_way_share", "Waits for data in transit", SHARE, "neutral", "Handed over and not arrived while the link was not full (latency, round trips; on links of unknown rate, within a host and in collectives all of the transfer), of the time in long waits.", _CALLS),
    ("mpi_wait_retransmission_share", "Waits for lost packets", SHARE, "lower", "While bytes were missing that had been sent, of the time in long waits.", _CALLS),
    ("mpi_wait_closed_window_share", "Waits for a closed window", SHARE, "lower", "While the receiver's TCP window had no room for what had been handed over, of the time in long waits.", _CALLS),
    ("mpi_wait_receiver_share", "Waits after the last packet", SHARE, "neutral", "From the last packet to the end of the call while the receiver had a CPU core, of the time in long waits.", _CALLS),
    ("mpi_wait_no_core_share", "Waits while descheduled", SHARE, "lower", "While the sender that was late, or the receiver to which all had come, was runnable without a CPU core, of the time in long waits.", f"{_CALLS}; /proc/thread-self/schedstat"),
    ("mpi_wait_unknown_share", "Waits not explained", SHARE, "lower", "Of the time in long waits; the reasons are on the trial's page.", _CALLS),
    ("mpi_waiting_rank", "Rank that waits longest", "1", "neutral", "Number of the rank with the largest share of its window in long waits.", _CALLS),
    ("mpi_waiting_rank_share", "Long waits of that rank", SHARE, "lower", "Its long waits / its window.", _CALLS),
    ("mpi_waited_for_rank", "Rank that it waits for", "1", "neutral", "Number of the rank whose late sending costs the rank that waits longest most.", _CALLS),
    ("mpi_waited_for_share", "Because that rank sends late", SHARE, "neutral", "Until that rank's calls began, of the longest waiting rank's long waits.", _CALLS),
]

_ENERGY: Final[list[Row]] = [
    ("energy_j", "Energy", "J", "lower", "Processor packages and memory of all hosts, and GPUs of which some kernel ran, from before the program to after it. Network cards, fans, power supplies and idle GPUs are not included.", _RAPL),
    ("power_mean_w", "Mean power", "W", "lower", "energy_j / the time between the first and the last read.", _RAPL),
    ("energy_delay_js", "Energy-delay product", "J s", "lower", "energy_j x elapsed_s.", _RAPL),
    ("energy_per_result_j", "Energy per result", "J", "lower", "power_mean_w / the deciding metric, if that is a rate: J per GFLOP, per step, per message.", _RAPL),
    ("energy_package_j", "Energy of packages", "J", "lower", "Processor packages of all hosts; cores and caches are parts of them, memory is not.", _RAPL),
    ("energy_dram_j", "Energy of memory", "J", "lower", "Memory of all hosts.", _RAPL),
    ("energy_gpu_j", "Energy of GPUs", "J", "lower", "All GPUs of all hosts, idle ones included.", _NVML),
    ("energy_host_j", "Energy of whole hosts", "J", "lower", "Meters of whole hosts, shown apart and never added to others.", "/sys/cray/pm_counters/energy"),
    ("energy_host_estimated_j", "Energy of whole hosts, estimated", "J", "lower", "Power of the board x time, read every 10 s; lags by seconds and includes all jobs of a host.", "ipmitool dcmi power reading"),
    ("energy_job_estimated_j", "Energy of the job, estimated", "J", "lower", "The scheduler's account of the whole job, from before the program to after it; lags by its sampling interval.", "sacct ConsumedEnergyRaw"),
    ("power_host_max_w", "Power of the hungriest host", "W", "lower", "Largest mean power of packages and memory of one host.", _RAPL),
    ("power_host_min_w", "Power of the most frugal host", "W", "lower", "Smallest mean power of packages and memory of one host.", _RAPL),
]

_FABRIC: Final[list[Row]] = [
    ("fabric_sent_bytes", "Sent by fabric ports", "B", "neutral", "4 x port_xmit_data of active ports (InfiniBand, RoCE, Omni-Path), all hosts; the driver's own bytes of bnxt_re, EFA and irdma.", _PORTS),
    ("fabric_received_bytes", "Received by fabric ports", "B", "neutral", "4 x port_rcv_data of the same ports, or the driver's own bytes.", _PORTS),
    ("fabric_sent_packets", "Packets sent by fabric ports", "1", "neutral", "port_xmit_packets.", _PORTS),
    ("fabric_received_packets", "Packets received by fabric ports", "1", "neutral", "port_rcv_packets.", _PORTS),
    ("fabric_wait_share", "Fabric ports waiting for credits", SHARE, "lower", "port_xmit_wait / (port_xmit_wait + words sent), of ports that count it: ticks in which a port had data and could not send. The length of a tick is the device's own.", _PORTS),
    ("fabric_errors", "Errors of fabric ports", "1", "lower", "Symbol errors, link recoveries, links down and receive errors.", _PORTS),
    ("fabric_worst_port_errors", "Errors of the worst fabric port", "1", "lower", "The same of the port that has most.", _PORTS),
    ("fabric_discards", "Discards of fabric ports", "1", "lower", "port_xmit_discards.", _PORTS),
    ("fabric_retransmissions", "Fabric retransmissions", "1", "lower", "Packet sequence errors, local ACK timeouts, RNR retries or retransmitted segments, as the device names them.", _HW_COUNTERS),
    ("fabric_cnps", "Congestion notifications", "1", "lower", "Congestion notification packets that senders handled.", _HW_COUNTERS),
    ("fabric_peak_share", "Peak use of a fabric port", SHARE, "neutral", "Largest rate of a port in one second, sent or received / its rate without line coding.", _PORTS),
    ("ethernet_sent_bytes", "Sent by Ethernet", "B", "neutral", "tx_bytes of physical interfaces, all hosts; other programs included.", _NET),
    ("ethernet_received_bytes", "Received by Ethernet", "B", "neutral", "rx_bytes of the same interfaces.", _NET),
    ("ethernet_sent_packets", "Packets sent by Ethernet", "1", "neutral", "tx_packets.", _NET),
    ("ethernet_received_packets", "Packets received by Ethernet", "1", "neutral", "rx_packets.", _NET),
    ("ethernet_drops", "Drops of Ethernet", "1", "lower", "rx_dropped + tx_dropped.", _NET),
    ("ethernet_errors", "Errors of Ethernet", "1", "lower", "rx_errors + tx_errors.", _NET),
    ("ethernet_peak_share", "Peak use of an interface", SHARE, "neutral", "Largest rate of an interface in one second, sent or received / its speed.", _NET),
    ("ethernet_pauses", "Ethernet pause frames", "1", "lower", "Pause frames received, of all priorities.", "ethtool -S, names of known drivers"),
    ("ethernet_discards", "Ethernet discards", "1", "lower", "Packets that interfaces dropped for want of buffers.", "ethtool -S, names of known drivers"),
    ("ethernet_ecn_marks", "ECN marks of Ethernet", "1", "lower", "Packets received with a congestion mark.", "ethtool -S, names of known drivers"),
    ("slingshot_sent_bytes", "Sent by Slingshot", "B", "neutral", "Octets of frames that the cxi devices sent without error.", "/sys/class/cxi/*/device/telemetry"),
    ("slingshot_received_bytes", "Received by Slingshot", "B", "neutral", "Octets of frames that the cxi devices received without error.", "/sys/class/cxi/*/device/telemetry"),
    ("memory_mpi_share", "MPI bytes within hosts", SHARE, "neutral", "Bytes of messages between ranks of one host / of all messages.", _NETWORKS),
    ("fabric_mpi_share", "MPI bytes over the fabric", SHARE, "neutral", "Bytes of messages between hosts / of all messages, times the fabric's share of the bytes that ports and interfaces sent.", _NETWORKS),
    ("ethernet_mpi_share", "MPI bytes over Ethernet", SHARE, "neutral", "The same for Ethernet.", _NETWORKS),
    ("slingshot_mpi_share", "MPI bytes over Slingshot", SHARE, "neutral", "The same for Slingshot.", _NETWORKS),
    ("mpi_between_hosts_bytes", "MPI bytes between hosts", "B", "neutral", "Bytes of point-to-point messages between ranks of different hosts; those that a library sends for collectives are not seen.", _INSIDE),
    ("networks_per_mpi_byte", "Bytes of networks per MPI byte", "1", "neutral", "Bytes that ports and interfaces of all hosts sent / mpi_between_hosts_bytes: 1 to 1.1 with headers alone; below 0.95 the counters miss a network, far above it collectives, files or other programs used them. Absent below 100 kB.", _NETWORKS),
]

_PROCESSOR: Final[list[Row]] = [
    ("frequency_mean_hz", "Core frequency", "Hz", "neutral", "Mean over cores and seconds.", "cpufreq/scaling_cur_freq"),
    ("throttle_events", "Thermal throttling", "1", "lower", "Times that heat slowed a core.", "thermal_throttle/core_throttle_count"),
    ("processor_instructions", "Instructions outside MPI", "1", "lower", "Instructions outside MPI, summed over ranks.", f"{_EVENTS}: instructions"),
    ("processor_cycles", "Cycles outside MPI", "1", "lower", "Processor cycles outside MPI, summed over ranks.", f"{_EVENTS}: cycles"),
    ("processor_ipc", "Instructions per cycle", "1", "higher", "processor_instructions / processor_cycles.", _EVENTS),
    ("processor_frequency_hz", "Frequency outside MPI", "Hz", "higher", "processor_cycles / processor_cpu_s: the clock of the cores while the ranks compute; time in the kernel lowers it.", _EVENTS),
    ("processor_cache_misses", "Cache misses outside MPI", "1", "lower", "What the kernel names cache-misses on this processor: on most, accesses that the last cache did not have; summed over ranks.", f"{_EVENTS}: cache-misses"),
    ("processor_page_faults", "Page faults outside MPI", "1", "lower", "Pages that ranks touched outside MPI and that were not mapped: new memory, files, swap.", f"{_EVENTS}: page-faults"),
    ("processor_cpu_s", "CPU time outside MPI", "s", "lower", "Time outside MPI on a CPU core, summed over ranks: as long as the kernel enabled the counters.", f"{_EVENTS}: time enabled"),
    ("processor_counted_share", "Time that was counted", SHARE, "higher", "Time outside MPI in which the counters ran and were read / all of it, of the rank with least; below 1 the counts are scaled.", f"{_EVENTS}: time running / time enabled"),
    ("temperature_max_c", "Highest temperature", "°C", "lower", "Of any processor sensor.", "hwmon of coretemp, k10temp or zenpower"),
]

_GPU: Final[list[Row]] = [
    ("gpu_used_share", "GPU use", SHARE, "higher", "Mean over GPUs of the time in which some kernel ran; not how much of the GPU it used.", _NVML),
    ("gpu_memory_bytes", "GPU memory, largest", "B", "lower", "Largest memory in use of a GPU.", _NVML),
    ("gpu_frequency_hz", "GPU frequency", "Hz", "neutral", "Mean clock of the multiprocessors.", _NVML),
    ("gpu_throttled_share", "GPU throttled", SHARE, "lower", "Share of samples in which power or heat lowered the clock.", _NVML),
]

_FILES: Final[list[Row]] = [
    ("io_read_bytes", "Read from storage", "B", "lower", "read_bytes summed over ranks: what the page cache did not have.", _PID_IO),
    ("io_written_bytes", "Written to storage", "B", "lower", "write_bytes summed over ranks.", _PID_IO),
    ("io_requested_read_bytes", "Read by calls", "B", "neutral", "rchar summed over ranks: of all read calls, pipes included.", _PID_IO),
    ("io_requested_written_bytes", "Written by calls", "B", "neutral", "wchar summed over ranks.", _PID_IO),
    ("io_wait_s", "Time waiting for storage", "s", "lower", "Block I/O delay summed over ranks.", "field 42 of /proc/PID/stat, with kernel.task_delayacct=1"),
    ("nfs_read_bytes", "Read from NFS", "B", "lower", "Bytes that NFS mounts of all hosts fetched from servers; other programs included.", "/proc/self/mountstats"),
    ("nfs_written_bytes", "Written to NFS", "B", "lower", "Bytes that they sent to servers.", "/proc/self/mountstats"),
    ("nfs_wait_s", "Time of NFS operations", "s", "lower", "From request to end, summed over all requests of all hosts: more than the elapsed time if several wait at once.", "/proc/self/mountstats, per-op statistics"),
    ("lustre_read_bytes", "Read from Lustre", "B", "lower", "read_bytes of Lustre mounts of all hosts.", "llite.*.stats"),
    ("lustre_written_bytes", "Written to Lustre", "B", "lower", "write_bytes of the same mounts.", "llite.*.stats"),
]

_VOLUME: Final[list[Row]] = [
    ("packets", "Packets", "1", "lower", "Frames in the capture.", "capinfos -c"),
    ("wire_bytes", "Bytes on the wire", "B", "lower", "Sum of original frame lengths, captured link layer included.", "capinfos -d"),
    ("payload_bytes", "Payload", "B", "neutral", "Sum of transport payloads: IP total length - IP header - TCP (or UDP) header; Ethernet padding never counts.", "tshark tcp.len, udp.length - 8"),
    ("duration_s", "Duration", "s", "neutral", "From the first to the last packet, in file order.", "capinfos -u, where no stamp is earlier than the one before"),
    ("goodput_bytes", "Goodput volume", "B", "neutral", "Bytes of the union of the sequence ranges of every flow direction: each byte once.", f"{_TCPTRACE}: unique bytes sent"),
    ("packet_intensity_pps", "Packet intensity", "packets/s", "neutral", "(packets - 1) / duration_s.", _OWN),
    ("throughput_Bps", "Throughput", "B/s", "higher", "wire_bytes / duration_s, as in the published tables.", "capinfos -y"),
    ("throughput_bps", "Bit rate", "bit/s", "higher", "The throughput in bits: 8 wire_bytes / duration_s.", "capinfos -i"),
    ("goodput_bps", "Goodput", "bit/s", "higher", "8 goodput_bytes / duration_s.", _OWN),
    ("line_rate_bps", "Line rate", "bit/s", "neutral", "8 sum(max(orig_len, 60) + 24) / duration_s: with FCS, preamble and inter-frame gap.", "IEEE 802.3 framing"),
    ("peak_1ms_bps", "Peak rate, 1 ms", "bit/s", "neutral", "Largest rate in any window of 1 ms, windows sliding.", _WIRE),
    ("peak_10ms_bps", "Peak rate, 10 ms", "bit/s", "neutral", "Largest rate in any window of 10 ms, windows sliding.", _WIRE),
    ("peak_100ms_bps", "Peak rate, 100 ms", "bit/s", "neutral", "Largest rate in any window of 100 ms, windows sliding.", _WIRE),
    ("burstiness", "Burstiness", "1", "lower", "peak_10ms_bps / throughput_bps.", _WIRE),
    ("packet_size_mean_bytes", "Packet size, mean", "B", "higher", "Mean original length.", "capinfos -z"),
    ("packet_size_p50_bytes", "Packet size, median", "B", "neutral", "Half of the packets are shorter: median original length.", _WIRE),
    ("packet_size_p95_bytes", "Packet size, 95th percentile", "B", "neutral", "95 % of the packets are shorter: 95 % quantile of the original length.", _WIRE),
    ("small_packet_share", "Small packets", SHARE, "lower", "Share of frames with an original length below 100 bytes.", _WIRE),
    ("pure_ack_share", "Pure ACKs", SHARE, "lower", "Share of TCP packets with ACK set, no payload, no SYN, FIN or RST.", f"{_TCPTRACE}: pure acks sent"),
    ("management_share", "Connection management", SHARE, "lower", "Share of TCP packets with SYN, FIN or RST.", "tshark tcp.flags"),
    ("non_mpi_share", "Not MPI", SHARE, "lower", "Share of frames outside the MPI flows (launcher's port range, else the flows that open as Open MPI, UCX or libfabric do).", _OWN),
]

_INTERARRIVAL: Final[list[Row]] = [
    ("interarrival_mean_s", "Inter-arrival, mean", "s", "neutral", "Duration / (packets - 1): mean time from one packet to the next.", _OWN),
    ("interarrival_median_s", "Inter-arrival, median", "s", "neutral", "Median time from one packet to the next.", "Hyndman and Fan 1996, type 7"),
    ("interarrival_p95_s", "Inter-arrival, 95th percentile", "s", "neutral", "95 % of the times between packets are shorter.", "Hyndman and Fan 1996, type 7"),
    ("interarrival_p99_s", "Inter-arrival, 99th percentile", "s", "neutral", "99 % of the times between packets are shorter.", "Hyndman and Fan 1996, type 7"),
    ("interarrival_cv", "Inter-arrival CV", "1", "neutral", "Standard deviation / mean of the times between packets: 1 if packets come at random (Poisson), more if they come in bursts.", _OWN),
    ("iteration_period_s", "Iteration period", "s", "neutral", "Time after which the number of packets repeats most strongly: the highest significant peak of its autocorrelation.", _OWN),
    ("hurst", "Hurst exponent", "1", "neutral", "How long bursts last: 0.5 if packets are independent, near 1 if bursts of all lengths occur; from the variance of counts over time, absent when a period is found.", "Leland et al. 1994"),
]

_TCP: Final[list[Row]] = [
    ("connections", "Connections", "1", "neutral", "Connections (4-tuple and initial sequence number), aborted ones included.", f"{_TCPTRACE}: TCP connections traced"),
    ("flows_without_handshake", "Flows without handshake", "1", "neutral", "Connections whose SYN was not captured.", _OWN),
    ("aborted_connections", "Aborted connections", "1", "lower", "Connections that Open MPI's simultaneous connects left behind after one handshake.", _OWN),
    ("retransmitted_segments", "Retransmitted segments", "1", "lower", "Segments whose range overlaps bytes already seen from that side; without keep-alives and zero-window probes.", f"{_TCPTRACE}: rexmt data pkts"),
    ("retransmitted_bytes", "Retransmitted bytes", "B", "lower", "Overlap of retransmitted segments with bytes already seen.", f"{_TCPTRACE}: rexmt data bytes"),
    ("keep_alives", "Keep-alives", "1", "neutral", "Segments of at most one byte just below the next sequence number, with everything acknowledged.", "tshark tcp.analysis.keep_alive"),
    ("zero_window_probes", "Zero-window probes", "1", "lower", "Segments at the left edge of a closed window, or one below it.", "tshark tcp.analysis.zero_window_probe"),
    ("out_of_order_segments", "Out-of-order segments", "1", "lower", "Segments that start before a recorded one and fill a gap never seen before.", f"{_TCPTRACE}: outoforder pkts"),
    ("ambiguous_segments", "Ambiguous segments", "1", "lower", "Out-of-order segments no sooner than one round trip after the gap: something sent again after a loss before the capture point looks the same.", _OWN),
    ("duplicate_acks", "Duplicate ACKs", "1", "lower", "ACK = highest so far, no payload, same window, data outstanding.", "RFC 5681 section 2"),
    ("triple_duplicate_acks", "Triple duplicate ACKs", "1", "lower", "Third consecutive duplicate ACK.", "RFC 5681 section 3.2"),
    ("zero_window_events", "Zero windows", "1", "lower", "Segments with window 0 without SYN, FIN or RST.", "tshark tcp.analysis.zero_window"),
    ("window_full_events", "Full windows", "1", "lower", "Times the outstanding bytes reached the peer's scaled window.", "tshark tcp.analysis.window_full"),
    ("window_mean_bytes", "Window, mean", "B", "higher", "Mean advertised window, scaled by the option of the SYN.", "RFC 7323 section 2"),
    ("window_min_bytes", "Window, smallest", "B", "higher", "Smallest advertised window, scaled by the option of the SYN.", "RFC 7323 section 2"),
    ("bytes_in_flight_max", "Bytes in flight, largest", "B", "neutral", "Largest (highest end sent - highest ACK received).", _OWN),
    ("bytes_in_flight_p95", "Bytes in flight, 95th percentile", "B", "neutral", "95 % of the data segments are sent with less in flight: 95 % quantile of (highest end sent - highest ACK received).", _OWN),
    ("rtt_handshake_s", "Round trip, handshake", "s", "lower", "t(final ACK) - t(SYN): independent of the capture point.", _OWN),
    ("rtt_min_s", "Round trip, smallest", "s", "lower", "Smallest time from data to its pure ACK at the capture point: in the middle of a path it is a part of the round trip, and rtt_handshake_s is all of it. ACKs of a host next to the capture point are left out.", "Karn and Partridge 1987"),
    ("rtt_median_s", "Round trip, median", "s", "lower", "Median time from the newest never-retransmitted byte that a pure ACK covers to that ACK, unless a later retransmission is covered too; a part of the round trip as rtt_min_s.", "Karn and Partridge 1987"),
    ("rtt_p95_s", "Round trip, 95th percentile", "s", "lower", "95 % of the round-trip samples are shorter.", "Karn and Partridge 1987"),
    ("rtt_samples", "Round trip, samples", "1", "neutral", "Number of round-trip samples.", "Karn and Partridge 1987"),
    ("rtt_half_a_s", "Half round trip, side A", "s", "lower", "Median from the capture point to the first endpoint and back.", _OWN),
    ("rtt_half_b_s", "Half round trip, side B", "s", "lower", "Median from the capture point to the second endpoint and back.", _OWN),
    ("response_latency_s", "Response latency", "s", "lower", "Median from data to a piggybacked ACK; includes the peer's computing.", _OWN),
    ("bdp_bytes", "Bandwidth-delay product", "B", "neutral", "Goodput x rtt_min of the flow, largest of all flows.", _OWN),
]

_TRUST: Final[list[Row]] = [
    ("captured", "Captured packets", "1", "neutral", "Packets that the capture tool reports as written.", "report of the capture tool"),
    ("received_by_filter", "Received packets", "1", "neutral", "Packets that passed the capture filter.", "report of the capture tool, else pcapng statistics block (isb_ifrecv)"),
    ("dropped_by_kernel", "Dropped packets", "1", "lower", "Packets that the kernel dropped because the tool was too slow.", "report of the capture tool, else pcapng statistics block (isb_osdrop, isb_ifdrop)"),
    ("tail_lost", "Tail lost", "1", "lower", "received_by_filter - captured: the tool was stopped too early.", "report of the capture tool"),
    ("super_segments", "Coalesced segments", "1", "lower", "Frames longer than MTU + link layer, or payload above the MSS: offloads were on.", _OWN),
    ("super_segment_share", "Coalesced segments, share", SHARE, "lower", "super_segments / TCP packets.", _OWN),
    ("wire_packets_estimated", "Packets on the wire, estimated", "1", "neutral", "Frames with every coalesced segment counted as ceil(P/MSS).", _OWN),
    ("duplicated_packets", "Duplicated packets", "1", "lower", "Frames whose IP and TCP headers and payload length were seen before within 1 ms.", _OWN),
    ("acked_unseen_segments", "ACKs for unseen data", "1", "lower", "ACKs for bytes that were never captured: loss in the capture.", "tshark tcp.analysis.ack_lost_segment"),
    ("time_reversals", "Time reversals", "1", "lower", "Packets stamped earlier than the one before; order is never changed.", _OWN),
    ("truncated_tail", "Truncated tail", "1", "lower", "1 when the last record is incomplete.", _OWN),
    ("unread_bytes", "Unread bytes", "B", "lower", "Bytes behind the last record that could be read.", _OWN),
    ("observer_effect", "Capture overhead", SHARE, "lower", "Elapsed time with capture / without - 1, from the experiment's uncaptured repetitions.", "control runs of the experiment"),
]

_STRUCTURES: Final[list[Metric]] = [
    Metric("idc", "Index of dispersion for counts", "1", "neutral", "Variance / mean of the number of packets in windows of w = 1, 3, 10 ... ms up to duration / 20: 1 if packets come at random (Poisson), more if they come in bursts. In interarrival.idc.", "Gusella 1991", "interarrival", shape="curve"),
    Metric("interarrival_fit", "Inter-arrival fits", "1", "neutral", "Exponential, Weibull, lognormal, gamma, Pareto by maximum likelihood, location 0; dAIC; KS distance as effect size; p-values only by parametric bootstrap. In interarrival.fits.", _OWN, "interarrival", shape="table"),
    Metric("port_peak_10ms_bps", "Peak rate of a port, 10 ms", "bit/s", "neutral", "Largest rate that one host sent, or received, in any window of ten whole milliseconds: what its link had to carry, wherever the capture was taken.", _WIRE, "matrices"),
    Metric("chain_volume_s", "Critical-path transfer time", "s", "lower", "Time that the links need, at the requested rate, for the packets of the longest chain of messages that wait for each other.", _CHAIN, "matrices"),
    Metric("chain_latency_s", "Critical-path latency", "s", "lower", "Sum over the same chain of the unloaded path from the capture point to the host that answers and back; at most this: a host may have had no need to wait.", _CHAIN, "matrices"),
    Metric("chain_messages", "Critical-path messages", "1", "lower", "Times that a host on the same chain had waited for a message, or for the ACK of a full window.", _CHAIN, "matrices"),
    Metric("chain_retransmission_s", "Critical-path retransmission time", "s", "lower", "Silence before the segments on the same chain that were sent again.", _CHAIN, "matrices"),
    Metric("host_matrix", "Host matrix", "1", "neutral", "Packets, wire bytes, payload bytes, retransmissions and RTT from host to host. In matrices.hosts.", _OWN, "matrices", shape="table"),
    Metric("rank_matrix", "Rank matrix", "1", "neutral", "The same from rank to rank, ranks known from the BTL handshakes. In matrices.ranks.", "handshakes of Open MPI (BTL)", "matrices", shape="table"),
    Metric("roce", "RoCEv2", "1", "neutral", "Packets, bytes, rates, operations, retransmitted packets (PSN), congestion notifications and ECN marks of InfiniBand over UDP, in total and per queue pair. In roce.", "InfiniBand Architecture Specification, annex A17", "matrices", shape="table"),
    Metric("trust", "Trust", "1", "neutral", "good, estimated, degraded or unusable, with reasons.", _OWN, "trust", shape="verdict"),
    Metric("legacy_2011", "The 2011 report", "1", "neutral", "Every figure of the 2011 script, as it printed them.", "shell script of 2011", "legacy", shape="table"),
]

# fmt: on

HEADLINE: Final = (
    "cpu_mean_rank_s",
    "elapsed_s",
    "packets",
    "interarrival_mean_s",
    "throughput_Bps",
    "packet_intensity_pps",
)
"""The six of the published table of 2007, in its order."""

METRICS: Final[dict[str, Metric]] = {
    entry.id: entry
    for entry in [
        *_section("run", _RUN, HEADLINE),
        *_section("energy", _ENERGY),
        *_section("fabric", _FABRIC),
        *_section("processor", _PROCESSOR),
        *_section("gpu", _GPU),
        *_section("files", _FILES),
        *_section("mpi", _MPI),
        *_section("volume", _VOLUME, HEADLINE),
        *_section("interarrival", _INTERARRIVAL, HEADLINE),
        *_section("tcp", _TCP),
        *_section("trust", _TRUST),
        *_STRUCTURES,
    ]
}


def metric(identifier: str) -> Metric:
    """Return the entry of the catalogue. Raises KeyError for unknown identifiers."""
    return METRICS[identifier]


def base_unit(unit: str) -> str:
    """Return the unit of the stored value: a share is stored as a plain ratio, "1"."""
    return "1" if unit == SHARE else unit


def numbers(*sections: Section) -> list[Metric]:
    """Return the numeric metrics of these sections (default: all), in catalogue order."""
    return [m for m in METRICS.values() if m.shape == "number" and (not sections or m.section in sections)]
