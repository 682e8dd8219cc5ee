"""causes_mpi4py CASE: ranks that hang in one of several ways, each a method or a function. Ends only when it is killed. Three ranks.

Calls per rank: Init_thread and what else mpi4py calls; then by case, and open for ever.
"""

import os
import sys
from array import array

from mpi4py import MPI


class Halo:
    def __init__(self, world):
        self.world = world
        self.rank = world.Get_rank()
        self.values = array("d", [0.0] * 4)

    def receive(self):
        self.world.Recv([self.values, MPI.DOUBLE],
                        source=0, tag=99)

    def send_right(self):
        self.world.Ssend(
            [self.values, MPI.DOUBLE],
            dest=(self.rank + 1) % 3, tag=4)

    def objects_from_left(self):
        return self.world.recv(source=(self.rank + 2) % 3, tag=6)


def advance(world):
    """Rank 1 waits for a message that nobody sends, the others in a barrier for rank 1."""
    if world.Get_rank() == 1:
        Halo(world).receive()
    world.Barrier()


def residual(world):
    """Of two collective calls rank 0 makes the second one first."""
    twin = world.Dup()
    total = array("d", [0.0])
    if world.Get_rank() == 0:
        twin.Barrier()
    world.Allreduce([array("d", [1.0]), MPI.DOUBLE], [total, MPI.DOUBLE])
    twin.Barrier()


def smooth(values):
    while True:
        values[0] = 0.5 * (values[0] + values[-1])


def load_mesh(source):
    with os.fdopen(source, "rb", buffering=0) as mesh:
        return mesh.read(1)


def outside(world):
    """Rank 1 computes for ever, rank 2 reads from a pipe that nobody writes to; rank 0 waits for both."""
    if world.Get_rank() == 1:
        smooth(array("d", [0.0] * 4))
    if world.Get_rank() == 2:
        load_mesh(os.pipe()[0])
    world.Barrier()


def main():
    world = MPI.COMM_WORLD
    cases = {
        "receive": advance,
        "sends": lambda world: Halo(world).send_right(),
        "objects": lambda world: Halo(world).objects_from_left(),
        "collectives": residual,
        "outside": outside,
    }
    cases[sys.argv[1]](world)


main()
