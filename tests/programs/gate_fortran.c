/* call gate(1) from Fortran, which has no weak symbols. */
#include "gate.h"

void gate_(const int *number) {
    gate(*number);
}
