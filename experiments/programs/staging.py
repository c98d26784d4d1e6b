"""Data set from one file server to many nodes, then searches on it.

Rank 0 serves, every other rank is a node. Staging is by pull (every node fetches from the server at once, over TCP), multicast (uftp
to all nodes at once) or tree (MPI broadcast over a binary tree). Runs with the system's Python and mpi4py; needs ``places.py`` in its
directory. The data set is in memory; the result is staging.json.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Read when MPI starts. Left alone, Open MPI lets the server send to ten nodes one by one, which takes as long as pull.
os.environ |= {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_tuned_bcast_algorithm": "5"}  # binary tree

from mpi4py import MPI  # type: ignore[import-not-found]  # the system's Python has it, this project's has not
from places import address, memory_directory  # type: ignore[import-not-found]  # the file beside this one

SERVER = 0
POLL_S = 0.005
CHUNK_BYTES = 1 << 20
SEQUENCE_LETTERS = 20_000
QUERY_LETTERS = 400
QUERIES = 20
NUCLEOTIDES = bytes(b"ACGT"[i % 4] for i in range(256))
RESULT = "staging.json"
UFTP_PORT = 1044
ANNOUNCE = "230.4.4.1"


def arguments() -> argparse.Namespace:
    """Return the command line; every rank reads the same one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--staging", choices=STAGING, required=True)
    parser.add_argument("--work", choices=("blast", "read"), required=True)
    parser.add_argument("--dataset-bytes", type=int, required=True)
    parser.add_argument("--searches", type=int, required=True)
    parser.add_argument(
        "--multicast-rate", type=float, default=0.0, help="bit/s; 0: as fast as the first link takes it"
    )
    return parser.parse_args()


# Waiting. A rank that polls at full speed would take the processor from the searches of the others.


def receive(world: MPI.Intracomm, source: int) -> Any:
    """Receive one object, asleep until it comes."""
    while not world.iprobe(source=source):
        time.sleep(POLL_S)
    return world.recv(source=source)


def wait_for_all(world: MPI.Intracomm) -> None:
    """Wait for all ranks, asleep."""
    barrier = world.Ibarrier()
    while not barrier.Test():
        time.sleep(POLL_S)


# The data set


def make_database(directory: Path, dataset_bytes: int) -> list[Path]:
    """Make a BLAST database of random sequences; return its files.

    It has ``dataset_bytes`` of packed letters, four letters a byte; the sequences are the same in every trial.
    """
    random_bytes = random.Random(568).randbytes  # noqa: S311 (contents, no secret)
    sequences = max(1, round(4 * dataset_bytes / SEQUENCE_LETTERS))
    fasta = directory / "sequences.fa"
    with fasta.open("wb") as stream:
        for number in range(sequences):
            stream.write(b">s%d\n%s\n" % (number, random_bytes(SEQUENCE_LETTERS).translate(NUCLEOTIDES)))
    command = ["makeblastdb", "-in", fasta.name, "-dbtype", "nucl", "-out", "data", "-blastdb_version", "5"]
    made = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if made.returncode != 0:
        raise SystemExit(f"makeblastdb failed: {made.stderr.strip() or made.stdout.strip()}")
    fasta.unlink()
    return sorted(directory.glob("data.*"))


def make_files(directory: Path, dataset_bytes: int) -> list[Path]:
    """Make one file of random bytes; return it in a list."""
    random_bytes, remaining = random.Random(568).randbytes, dataset_bytes  # noqa: S311
    with (directory / "data.bin").open("wb") as stream:
        while remaining:
            stream.write(random_bytes(min(remaining, CHUNK_BYTES)))
            remaining -= min(remaining, CHUNK_BYTES)
    return [directory / "data.bin"]


def make_query(rank: int, sequences: int) -> str:
    """Return FASTA of pieces of the stored sequences, different for every node."""
    random_bytes, choose = random.Random(568).randbytes, random.Random(rank)  # noqa: S311
    chosen = set(choose.sample(range(sequences), min(QUERIES, sequences)))
    lines = []
    for number in range(max(chosen) + 1):
        letters = random_bytes(SEQUENCE_LETTERS).translate(NUCLEOTIDES)
        if number in chosen:
            start = choose.randrange(SEQUENCE_LETTERS - QUERY_LETTERS)
            lines.append(f">q{number}\n{letters[start : start + QUERY_LETTERS].decode()}\n")
    return "".join(lines)


def digest(paths: list[Path]) -> str:
    """Return one SHA-256 of files and their names."""
    sha256 = hashlib.sha256()
    for path in sorted(paths):
        sha256.update(path.name.encode())
        for chunk in chunks(path):
            sha256.update(chunk)
    return sha256.hexdigest()


def chunks(path: Path) -> Iterator[bytes]:
    """Yield the content of a file in pieces of bounded size."""
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk


# Staging. Each method has the server's side, a context around the nodes' staging, and the node's side.


@contextlib.contextmanager
def serve_pull(world: MPI.Intracomm, files: list[Path], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Serve files with one thread per node; the kernel sends them."""

    class Answer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            for path in files:
                with path.open("rb") as stream:
                    self.request.sendfile(stream)

    class Server(socketserver.ThreadingTCPServer):
        request_queue_size = world.size
        daemon_threads = True

    with Server((address(), 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"address": server.server_address}
        server.shutdown()


def fetch_pull(world: MPI.Intracomm, offer: dict[str, Any], directory: Path, begin: Any) -> None:
    begin()
    with socket.create_connection(tuple(offer["address"])) as connection, connection.makefile("rb") as stream:
        for name, size in offer["files"]:
            with (directory / name).open("wb") as target:
                while target.tell() < size:
                    part = stream.read(min(CHUNK_BYTES, size - target.tell()))
                    if not part:
                        raise SystemExit(f"the file server closed with {size - target.tell()} bytes to come")
                    target.write(part)


@contextlib.contextmanager
def serve_multicast(world: MPI.Intracomm, files: list[Path], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Send every packet once with uftp; nodes request what they miss."""
    rate = "-1" if not options.multicast_rate else str(max(1, round(options.multicast_rate / 1000)))
    command = [
        *("uftp", "-R", rate, "-r", "0.1:0.01:1.0", "-H", ",".join(_uftp_name(rank) for rank in range(1, world.size))),
        *("-M", ANNOUNCE, "-p", str(UFTP_PORT), "-I", address(), "-x", "1", *(str(path) for path in files)),
    ]

    def send() -> None:
        sent = subprocess.run(command, capture_output=True, text=True)
        if sent.returncode != 0:
            sys.stderr.write(f"uftp ended with status {sent.returncode}: {(sent.stdout + sent.stderr)[-2000:]}\n")
            sys.stderr.flush()
            world.Abort(1)

    sending = threading.Thread(target=send, daemon=True)
    yield {"begin": sending.start}
    sending.join()


def fetch_multicast(world: MPI.Intracomm, offer: dict[str, Any], directory: Path, begin: Any) -> None:
    """Run the receiver until all files are there and whole."""
    # A name per rank, for ranks on one host share its address; ``-t``: a file has its name only when it is whole.
    command = ["uftpd", "-d", "-t", "-U", _uftp_name(world.rank), "-D", str(directory), "-I", address(), "-x", "0"]
    command += ["-M", ANNOUNCE, "-p", str(UFTP_PORT), "-q", "-B", "4194304"]
    receiver = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_listening(receiver)
        begin()
        while not all((directory / name).exists() for name, _ in offer["files"]):
            if receiver.poll() is not None:
                raise SystemExit(f"uftpd ended with status {receiver.returncode}")
            time.sleep(POLL_S)
    finally:
        receiver.terminate()
        receiver.wait()


def _uftp_name(rank: int) -> str:
    return f"0x{0x52570000 + rank:08X}"


def _wait_until_listening(receiver: subprocess.Popen[bytes]) -> None:
    """Wait for uftpd: the server announces itself a few times only."""
    port = f":{UFTP_PORT:04X} "
    deadline = time.monotonic() + 10
    while not any(port in line for line in Path("/proc/self/net/udp").read_text().splitlines()):
        if receiver.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("uftpd does not listen; does something else use its port?")
        time.sleep(POLL_S)


@contextlib.contextmanager
def serve_tree(world: MPI.Intracomm, files: list[Path], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Broadcast every file in chunks; nodes pass parts on to at most two others."""

    def send() -> None:
        for path in files:
            for chunk in chunks(path):
                world.Bcast([bytearray(chunk), MPI.BYTE], root=SERVER)

    yield {"begin": send}


def fetch_tree(world: MPI.Intracomm, offer: dict[str, Any], directory: Path, begin: Any) -> None:
    begin()
    for name, size in offer["files"]:
        with (directory / name).open("wb") as target:
            for start in range(0, size, CHUNK_BYTES):
                part = bytearray(min(CHUNK_BYTES, size - start))
                world.Bcast([part, MPI.BYTE], root=SERVER)
                target.write(part)


STAGING = {
    "pull": (serve_pull, fetch_pull),
    "multicast": (serve_multicast, fetch_multicast),
    "tree": (serve_tree, fetch_tree),
}


# Searches


def search(options: argparse.Namespace, directory: Path, query: Path) -> int:
    """Search once; return the perfect matches of queries, or the bytes read."""
    if options.work == "read":
        return sum(len(chunk) for path in directory.glob("data.*") for chunk in chunks(path))
    command = ["blastn", "-task", "megablast", "-db", str(directory / "data"), "-query", str(query)]
    command += ["-outfmt", "6 qseqid pident length", "-max_target_seqs", "5", "-num_threads", "1"]
    blastn = subprocess.run(command, capture_output=True, text=True)
    if blastn.returncode != 0:
        raise SystemExit(f"blastn failed: {blastn.stderr.strip()}")
    rows = [line.split() for line in blastn.stdout.splitlines()]
    return len({name for name, share, length in rows if float(share) == 100.0 and int(length) == QUERY_LETTERS})


# The two roles


def serve(world: MPI.Intracomm, options: argparse.Namespace) -> None:
    """Make the data set, hand it out, collect the nodes' reports, write the result."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(
        prefix="rankwire-staging-", dir=memory_directory(8 * options.dataset_bytes)
    ) as made:
        directory = Path(made)
        files = (make_database if options.work == "blast" else make_files)(directory, options.dataset_bytes)
        sizes = [(path.name, path.stat().st_size) for path in files]
        total = sum(size for _, size in sizes)
        setup_s = time.monotonic() - began
        print(f"{len(files)} files, {total / 1e6:.1f} MB, made in {setup_s:.1f} s", flush=True)
        with STAGING[options.staging][0](world, files, options) as offer:
            begin = offer.pop("begin", None)
            for rank in range(1, world.size):
                world.send({**offer, "files": sizes}, dest=rank)
            wait_for_all(world)  # nodes are ready: the clock starts on all of them
            if begin is not None:
                begin()
            reports = [receive(world, rank) for rank in range(1, world.size)]
        expected = digest(files)
    wrong = [report["rank"] for report in reports if report["digest"] != expected]
    if wrong:
        raise SystemExit(f"the data set arrived changed on ranks {wrong}")
    result = {"dataset_bytes": total, "setup_s": setup_s, "nodes": reports}
    Path(RESULT).write_text(json.dumps(result))
    print(f"staged to {len(reports)} nodes in {max(report['staged_s'] for report in reports):.3f} s", flush=True)


def be_node(world: MPI.Intracomm, options: argparse.Namespace) -> None:
    """Stage, search, report."""
    offer = receive(world, SERVER)
    needed = 2 * sum(size for _, size in offer["files"])
    started = 0.0

    def begin() -> None:
        nonlocal started
        wait_for_all(world)
        started = time.monotonic()

    with tempfile.TemporaryDirectory(prefix="rankwire-staging-", dir=memory_directory(needed)) as made:
        directory = Path(made)
        query = directory / "query.fa"
        if options.work == "blast":
            sequences = max(1, round(4 * options.dataset_bytes / SEQUENCE_LETTERS))
            query.write_text(make_query(world.rank, sequences))
        STAGING[options.staging][1](world, offer, directory, begin)
        staged_s = time.monotonic() - started
        expected = query.read_text().count(">") if options.work == "blast" else sum(size for _, size in offer["files"])
        times, hits = [], []
        for _ in range(options.searches):
            before = time.monotonic()
            hits.append(search(options, directory, query))
            times.append(time.monotonic() - before)
            if hits[-1] != expected:
                raise SystemExit(f"rank {world.rank} found {hits[-1]} of {expected}: the data set is not what was sent")
        ended_s = time.monotonic() - started
        report = {
            "rank": world.rank,
            "host": MPI.Get_processor_name(),
            "staged_s": staged_s,
            "searches_s": times,
            "found": hits,
            "ended_s": ended_s,
            "digest": digest(list(directory.glob("data.*"))),
        }
    world.send(report, dest=SERVER)


def main(world: MPI.Intracomm) -> None:
    """Divide the ranks."""
    options = arguments()
    if world.size < 2:
        raise SystemExit("needs a rank for the server and one for a node")
    if world.rank == SERVER:
        serve(world, options)
    else:
        be_node(world, options)
    wait_for_all(world)


if __name__ == "__main__":
    try:
        main(MPI.COMM_WORLD)
    except BaseException:
        # The other ranks would wait for this one for ever.
        traceback.print_exc()
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)
