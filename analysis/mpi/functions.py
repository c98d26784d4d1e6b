"""The functions of MPI-3.1 that a profile counts, for the shim and the reader.

Each row: name, number of arguments in C, and how many bytes this rank hands over, as a word and the places of arguments.
``message COUNT TYPE PEER COMM`` is a message to a rank, ``persistent ... REQUEST`` one that Start sends; ``block COUNT TYPE``
are the bytes of a collective, a file or a window; ``each COUNT TYPE COMM`` as many for every rank, ``vector COUNTS TYPE COMM``
and ``types COUNTS TYPES COMM`` a list of them; ``root-`` before a word: by the root alone, whose place comes last. ``from PEER COMM``
names whom a receive waits for, ``makes COMM`` where a communicator's handle is written to. After ``else`` are the places that count where the data are in the receive buffer (MPI_IN_PLACE).
"""

# ruff: noqa: E501 - one line per family reads as the table it is

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

Class = Literal["point-to-point", "collective", "synchronisation", "waiting", "one-sided", "input/output", "life"]
CLASSES: Final[tuple[Class, ...]] = get_args(Class)
LIFE: Final = ("Init", "Init_thread", "Finalize", "Abort")
"""Implemented in the shim itself: they begin and end the counted window."""


@dataclass(frozen=True, slots=True)
class Function:
    """``hidden``: how many lengths of texts Fortran hands over behind the arguments."""

    name: str
    kind: Class
    arguments: int
    bytes: str = ""
    hidden: int = 0


def _family(kind: Class, arguments: int, counted: str, names: str, hidden: int = 0) -> list[Function]:
    return [Function(name, kind, arguments, counted, hidden) for name in names.split()]


def _with_requests(functions: list[Function]) -> list[Function]:
    """Return each blocking form and its non-blocking form, with an I and a request."""
    return functions + [
        Function(f"I{each.name[0].lower()}{each.name[1:]}", each.kind, each.arguments + 1, each.bytes)
        for each in functions
    ]


# fmt: off
_POINT_TO_POINT: Final = [
    *_family("point-to-point", 6, "message 1 2 3 5", "Send Bsend Ssend Rsend"),
    *_family("point-to-point", 7, "message 1 2 3 5", "Isend Ibsend Issend Irsend"),
    *_family("point-to-point", 12, "message 1 2 3 10", "Sendrecv"),
    *_family("point-to-point", 9, "message 1 2 3 7", "Sendrecv_replace"),
    *_family("point-to-point", 7, "persistent 1 2 3 5 6", "Send_init Bsend_init Ssend_init Rsend_init"),
    *_family("point-to-point", 7, "from 3 5", "Recv Irecv Recv_init"),
    *_family("point-to-point", 5, "", "Mrecv Imrecv"),
    *_family("point-to-point", 1, "start 0", "Start"),
    *_family("point-to-point", 2, "startall 0 1", "Startall"),
    *_family("point-to-point", 4, "from 0 2", "Probe"),
    *_family("point-to-point", 5, "from 0 2", "Iprobe"),
    *_family("point-to-point", 5, "", "Mprobe"),
    *_family("point-to-point", 6, "", "Improbe"),
    *_family("point-to-point", 1, "", "Cancel"),
    *_family("point-to-point", 1, "forget 0", "Request_free"),
    *_family("point-to-point", 2, "", "Buffer_attach Buffer_detach"),
]
_WAITING: Final = [
    *_family("waiting", 2, "", "Wait"),
    *_family("waiting", 3, "", "Waitall Test Request_get_status"),
    *_family("waiting", 4, "", "Waitany Testall"),
    *_family("waiting", 5, "", "Waitsome Testany Testsome"),
]
_COLLECTIVE: Final = _with_requests([
    *_family("synchronisation", 1, "", "Barrier"),
    *_family("collective", 5, "root-block 1 2 4 3", "Bcast"),
    *_family("collective", 8, "block 1 2", "Gather"),
    *_family("collective", 9, "block 1 2", "Gatherv"),
    *_family("collective", 8, "root-each 1 2 7 6", "Scatter"),
    *_family("collective", 9, "root-vector 1 3 8 7", "Scatterv"),
    *_family("collective", 7, "block 1 2 else 4 5", "Allgather"),
    *_family("collective", 8, "block 1 2", "Allgatherv"),
    *_family("collective", 7, "each 1 2 6 else 4 5", "Alltoall"),
    *_family("collective", 9, "vector 1 3 8 else 5 7", "Alltoallv"),
    *_family("collective", 9, "types 1 3 8 else 5 7", "Alltoallw"),
    *_family("collective", 7, "block 2 3 else 2 3", "Reduce"),
    *_family("collective", 6, "block 2 3 else 2 3", "Allreduce Scan Exscan"),
    *_family("collective", 6, "vector 2 3 5 else 2 3", "Reduce_scatter"),
    *_family("collective", 6, "each 2 3 5 else 2 3", "Reduce_scatter_block"),
    *_family("collective", 7, "block 1 2", "Neighbor_allgather"),
    *_family("collective", 8, "block 1 2", "Neighbor_allgatherv"),
    *_family("collective", 7, "", "Neighbor_alltoall"),
    *_family("collective", 9, "", "Neighbor_alltoallv Neighbor_alltoallw"),
])
_COMMUNICATORS: Final = [
    *_family("synchronisation", 2, "makes 1", "Comm_dup"),
    *_family("synchronisation", 3, "makes 2", "Comm_create"),
    *_family("synchronisation", 3, "", "Comm_idup"),
    *_family("synchronisation", 3, "makes 2", "Comm_dup_with_info Intercomm_merge"),
    *_family("synchronisation", 4, "makes 3", "Comm_split Comm_create_group"),
    *_family("synchronisation", 5, "makes 4", "Comm_split_type"),
    *_family("synchronisation", 6, "makes 5", "Intercomm_create"),
    *_family("synchronisation", 1, "release 0", "Comm_free Comm_disconnect"),
]
_ONE_SIDED: Final = [
    *_family("one-sided", 8, "block 1 2", "Put Get"),
    *_family("one-sided", 9, "block 1 2", "Accumulate Rput Rget"),
    *_family("one-sided", 10, "block 1 2", "Raccumulate"),
    *_family("one-sided", 12, "block 1 2", "Get_accumulate"),
    *_family("one-sided", 13, "block 1 2", "Rget_accumulate"),
    *_family("one-sided", 7, "", "Fetch_and_op Compare_and_swap"),
    *_family("one-sided", 6, "", "Win_create Win_allocate Win_allocate_shared"),
    *_family("one-sided", 3, "", "Win_create_dynamic Win_start Win_post Win_attach"),
    *_family("one-sided", 2, "", "Win_fence Win_unlock Win_lock_all Win_test Win_flush Win_flush_local Win_detach"),
    *_family("one-sided", 4, "", "Win_lock"),
    *_family("one-sided", 1, "", "Win_free Win_unlock_all Win_complete Win_wait Win_flush_all Win_flush_local_all Win_sync"),
]
_FILES: Final = [
    *_family("input/output", 5, "", "File_open", hidden=1),
    *_family("input/output", 2, "", "File_delete", hidden=1),
    *_family("input/output", 6, "", "File_set_view", hidden=1),
    *_family("input/output", 1, "", "File_close File_sync"),
    *_family("input/output", 2, "", "File_set_size File_preallocate File_get_size"),
    *_family("input/output", 3, "", "File_seek File_seek_shared"),
    *_family("input/output", 5, "block 2 3", "File_read File_write File_read_all File_write_all File_iread File_iwrite File_iread_all File_iwrite_all"),
    *_family("input/output", 5, "block 2 3", "File_read_shared File_write_shared File_iread_shared File_iwrite_shared File_read_ordered File_write_ordered"),
    *_family("input/output", 6, "block 3 4", "File_read_at File_write_at File_read_at_all File_write_at_all File_iread_at File_iwrite_at File_iread_at_all File_iwrite_at_all"),
    *_family("input/output", 4, "block 2 3", "File_read_all_begin File_write_all_begin File_read_ordered_begin File_write_ordered_begin"),
    *_family("input/output", 5, "block 3 4", "File_read_at_all_begin File_write_at_all_begin"),
    *_family("input/output", 3, "", "File_read_all_end File_write_all_end File_read_at_all_end File_write_at_all_end File_read_ordered_end File_write_ordered_end"),
]
# fmt: on

FUNCTIONS: Final = tuple(
    [Function(name, "life", arguments) for name, arguments in zip(LIFE, (2, 4, 0, 2), strict=True)]
    + _POINT_TO_POINT
    + _WAITING
    + _COLLECTIVE
    + _COMMUNICATORS
    + _ONE_SIDED
    + _FILES
)
"""In the order of a profile's rows."""
