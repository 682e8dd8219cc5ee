"""causes_mpi4py: rank 1 waits for a message that nobody sends, the others in a barrier for rank 1. Ends only when it is killed.

Calls per rank: Init_thread and what else mpi4py calls; then open for ever: Recv (rank 1), Barrier (others).
"""

from array import array

from mpi4py import MPI


class Halo:
    def __init__(self, world):
        self.world = world

    def receive(self):
        values = array("d", [0.0] * 4)
        self.world.Recv([values, MPI.DOUBLE],
                        source=0, tag=99)
        return values


def advance(world):
    if world.Get_rank() == 1:
        Halo(world).receive()
    world.Barrier()


def main():
    advance(MPI.COMM_WORLD)


main()
