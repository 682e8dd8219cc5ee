"""ring_mpi4py [iterations]: messages round a ring from Python, through mpi4py's buffer interface.

Calls per rank for N iterations (default 20): Bcast 1; Send, Recv, Isend, Irecv, Waitall, Sendrecv, Allreduce N; Barrier in
every tenth. mpi4py adds calls of its own (Init_thread, attributes, sizes of datatypes); on a library with MPI-4's large
counts, version 4 calls MPI_Send_c and so on. Gates: 1 after MPI_Init, 3 before the end.
"""

import ctypes
import sys
from array import array

from mpi4py import MPI


def gate(number):
    """Waits if a test holds the gate (see truth/gate.c)."""
    wait = getattr(ctypes.CDLL(None), "truth_gate", None)
    if wait is not None:
        wait(number)


def main():
    world = MPI.COMM_WORLD
    rank, ranks = world.Get_rank(), world.Get_size()
    gate(1)
    iterations = array("i", [int(sys.argv[1]) if len(sys.argv) > 1 else 20])
    world.Bcast([iterations, MPI.INT], root=0)
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    for iteration in range(iterations[0]):
        token = array("i", [iteration])
        if rank == 0:
            world.Send([token, MPI.INT], dest=right, tag=1)
        world.Recv([token, MPI.INT], source=left, tag=1)
        assert token[0] == iteration + left
        token[0] += 1
        if rank != 0:
            world.Send([token, MPI.INT], dest=right, tag=1)

        out, received = array("i", [rank * 1000 + iteration]) * 16384, array("i", [0]) * 16384
        requests = [
            world.Irecv([received, MPI.INT], source=left, tag=2),
            world.Isend([out, MPI.INT], dest=right, tag=2),
        ]
        MPI.Request.Waitall(requests)
        assert received == array("i", [left * 1000 + iteration]) * 16384

        world.Sendrecv([out, MPI.INT], left, 3, [received, MPI.INT], right, 3)
        assert received == array("i", [right * 1000 + iteration]) * 16384

        total = array("i", [0])
        world.Allreduce([array("i", [rank]), MPI.INT], [total, MPI.INT], op=MPI.SUM)
        assert total[0] == ranks * (ranks - 1) // 2
        if iteration % 10 == 9:
            world.Barrier()
    gate(3)
    if rank == 0:
        print(f"ring_mpi4py: {ranks} ranks, {iterations[0]} iterations, all messages correct")


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:  # the other ranks would wait for ever
        print(f"ring_mpi4py: {error!r}", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)
