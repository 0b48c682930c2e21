#include <criterion/criterion.h>
#include <math.h>

#include "daemon/launch/slurm_reply.h"

static void reads(const char *text, double joules)
{
    double got = slurm_energy_read(text);

    cr_assert(isnan(joules) ? isnan(got) : got == joules, "%s: %g", text, got);
}

Test(slurm_energy, counts_each_node_once)
{
    reads("mpirun 1\n12.batch|8140\n", 8140);
    reads("mpirun 2\n12.batch|8140\n12.0||7990\n", 16130);
    reads("mpirun 2\n12.extern|17000\n12.batch|8140\n12|16130\n12.batch|\n12.0|7990\n", 17000);
    reads("srun 2\n12.batch|8140\n12.0|16001\n", 16001);
    reads("srun 1\n12.batch|8140\n12|\n12.1|100\n12.0|8000\n", 8000);
    reads("mpirun 900\n7.extern|6000000000\n", 6e9); /* a value of more than 32 bits */
}

Test(slurm_energy, no_records_give_no_energy)
{
    static const char *const texts[] = {
        "",
        "mpirun 1",
        "mpirun 1\n",
        "mpirun 1\n12.batch|0\n",
        "mpirun 1\n12.batch|\n",
        "mpirun 1\n12.batch|4294967294\n12.batch|18446744073709551614\n",
        "mpirun 1\n12.batch|-5\n",
        "mpirun 1\n12.batch|5x\n",
        "mpirun 2\n12.batch|8140\n",            /* the other node is not told */
        "mpirun 2\n12.0|8140\n",                /* nor the first one */
        "srun 1\n12.batch|8140\n",              /* the ranks' step is not */
        "mpirun 1\n12|8140\n12.|3\n12.0.x|3\n", /* a job is no step */
        "mpirun\n12.batch|8140\n",
        "nohup 1\n12.batch|8140\n12.0|3\n",
        "mpirun -1\n12.batch|8140\n",
        "sstat: error: no such step\n|||\n.|\n",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        reads(texts[i], NAN);
}
