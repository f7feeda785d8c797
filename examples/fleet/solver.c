/* solver: a parallel program whose variable is watched in each rank. */
#include <mpi.h>
#include <stdio.h>

double residual = 1;

static void
relax(int step)
{
	residual = residual / 2 + step;
}

static void
exchange(void)
{
	double sum;

	MPI_Allreduce(&residual, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	residual = sum / 4;
}

int
main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int step = 0; step < 10; step++) {
		relax(step);
		exchange();
	}
	if (rank == 0)
		printf("residual %g\n", residual);
	MPI_Finalize();
	return 0;
}
