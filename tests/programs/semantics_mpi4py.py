"""semantics_mpi4py: the forms of calls that are most easily misread, from Python: the same traffic as semantics_f08 and semantics_cxx.

On a library with MPI-4's large counts, mpi4py 4 calls MPI_Send_c and so on. Four ranks. Gates: 1 after MPI_Init, 2 when
communicators, types and persistent requests exist, 3 before they are freed. Exit status 1 on wrong data.
"""

import ctypes
import os
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
    rank = world.Get_rank()
    assert world.Get_size() == 4
    right, left, opposite = (rank + 1) % 4, (rank + 3) % 4, (rank + 2) % 4
    out, into, memory = array("i", range(rank * 1000 + 1, rank * 1000 + 65)), array("i", [0]) * 64, array("i", [0]) * 16
    three, got = array("d", [rank]) * 3, array("d", [0]) * 3
    counts, places = [1, 2, 3, 4], [0, 1, 3, 6]
    gate(1)
    half = world.Split(rank % 2, rank)
    half.Set_name("half")
    sparse = MPI.INT.Create_vector(3, 1, 2).Commit()
    receiving = world.Recv_init([into, 3, MPI.INT], source=left, tag=5)
    sending = world.Send_init([out, 3, MPI.INT], dest=right, tag=5)
    gate(2)

    # The amounts are below what a library sends at once, so nobody waits for a partner here.
    status = MPI.Status()
    world.Send([out, 10, MPI.INT], dest=right, tag=1)
    world.Recv([into, 16, MPI.INT], source=left, tag=1, status=status)
    assert into[9] == left * 1000 + 10
    world.Send([out, 2, MPI.INT], dest=right, tag=2)
    world.Recv([into, 6, MPI.INT], source=MPI.ANY_SOURCE, tag=2, status=status)
    assert status.Get_source() == left
    world.Send([three, 3, MPI.DOUBLE], dest=right, tag=3)
    world.Recv([got, 3, MPI.DOUBLE], source=left, tag=3)
    assert got[2] == left
    world.Send([out, 2, sparse], dest=right, tag=4)
    world.Recv([into, 6, MPI.INT], source=left, tag=4)
    assert into[2] == left * 1000 + 5
    world.Send([out, 64, MPI.INT], dest=MPI.PROC_NULL, tag=4)
    requests = [
        world.Irecv([into, 8, MPI.INT], source=left, tag=6),
        world.Isend([out, 5, MPI.INT], dest=right, tag=6),
    ]
    MPI.Request.Waitall(requests)
    there = 1 - rank // 2
    half.Sendrecv([out, 4, MPI.INT], there, 7, [into, 4, MPI.INT], there, 7)
    assert into[3] == opposite * 1000 + 4
    for _ in range(2):
        receiving.Start()
        sending.Start()
        receiving.Wait()
        sending.Wait()

    into[:5] = out[:5]
    world.Bcast([into, 5, MPI.INT], root=2)
    assert into[4] == 2005
    world.Allreduce(MPI.IN_PLACE, [three, 3, MPI.DOUBLE])
    assert three[0] == 6
    world.Gatherv([out, rank + 1, MPI.INT], [into, counts, places, MPI.INT] if rank == 1 else None, root=1)
    assert rank != 1 or into[9] == 3004
    if rank == 0:
        world.Scatter([out, 2, MPI.INT], MPI.IN_PLACE, root=0)
    else:
        world.Scatter(None, [into, 2, MPI.INT], root=0)
        assert into[0] == 2 * rank + 1
    world.Alltoall([out, 2, MPI.INT], [into, 2, MPI.INT])
    world.Reduce_scatter([out, 10, MPI.INT], [into, rank + 1, MPI.INT], counts)

    window = MPI.Win.Create(memory, 4, comm=world)
    window.Fence()
    window.Put([out, 3, MPI.INT], right)
    window.Fence()
    assert memory[2] == left * 1000 + 3
    window.Free()
    path = os.path.join(os.environ.get("MPIPROBE_TRUTH_DIR", "/tmp"), "semantics_mpi4py")
    file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
    file.Write_at(rank * 64, [out, 16, MPI.INT])
    file.Close()

    gate(3)
    receiving.Free()
    sending.Free()
    sparse.Free()
    half.Free()
    if rank == 0:
        print("semantics_mpi4py: all data correct")


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:  # the other ranks would wait for ever
        print(f"semantics_mpi4py: {error!r}", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)
