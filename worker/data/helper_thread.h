/* Threads of a rank beside those that compute: they decode images, or watch. */
#pragma once

#include <pthread.h>

/*
 * Starts one that may run on any cpu of the rank and takes no signals. OMP_PROC_BIND binds the
 * calling thread to the first of OpenMP's places, and a thread inherits its maker's cpus: without
 * this all helpers would share a core with the thread whose step the others wait for.
 * name: at most 15 bytes, for top -H and debuggers. Returns 0, or errno's number.
 */
int helper_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument);

/* The cpus of all of OpenMP's places, and how many they are; none where OpenMP binds no threads. */
int helper_thread_places(cpu_set_t *cpus);
