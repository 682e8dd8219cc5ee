C     causes_f77: rank 1 waits for a message of another tag than rank 0
C     sends, in Fortran 77 with mpif.h. Three ranks; ends only when it is
C     killed.
C
C     Calls per rank: Init, Comm_rank 1; then open for ever: Ssend (rank
C     0), Recv (rank 1), Barrier (rank 2).
      PROGRAM MAIN
      INCLUDE 'mpif.h'
      INTEGER IERR, IRANK
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, IRANK, IERR)
      CALL STEP(IRANK)
      CALL MPI_FINALIZE(IERR)
      END

      SUBROUTINE STEP(IRANK)
      INCLUDE 'mpif.h'
      INTEGER IRANK, IERR, IVALUE, ISTAT(MPI_STATUS_SIZE)
      IVALUE = 5
      IF (IRANK .EQ. 0) THEN
        CALL MPI_SSEND(IVALUE, 1, MPI_INTEGER, 1, 3, MPI_COMM_WORLD,
     &                 IERR)
      ELSE IF (IRANK .EQ. 1) THEN
        CALL MPI_RECV(IVALUE, 1, MPI_INTEGER, 0, 4, MPI_COMM_WORLD,
     &                ISTAT, IERR)
      END IF
      CALL MPI_BARRIER(MPI_COMM_WORLD, IERR)
      END
