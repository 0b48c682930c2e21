/*
 * What Slurm has measured of an allocation, where one of its plugins measures energy
 * (AcctGatherEnergyType): the batch script asks for it at its end (slurm_script.c) and leaves it in
 * attempt-N/slurm-energy,
 *
 *     mpirun 2            how ranks were started, nodes
 *     12.batch|8140       sstat -P -o JobID,ConsumedEnergyRaw, of steps that run: joules
 *     12.0||7990          likewise of steps that have ended, by sacct
 *
 * Each step tells of its nodes from its start on, whoever computes there, so steps on the same node
 * count it twice. Pure.
 */
#pragma once

#define SLURM_ENERGY "slurm-energy" /* in the attempt's folder */

/* Joules of all nodes: those of the extern step; else of the ranks' step, which srun starts on all
 * of them; else, with mpirun, of the batch script's node and of the step with the daemons on the
 * others. NAN: not known. 0 and Slurm's NO_VAL are no measurements. text may be anything. */
double slurm_energy_read(const char *text);
