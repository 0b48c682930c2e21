#include "worker/data/helper_thread.h"

#include <omp.h>
#include <signal.h>
#include <stdlib.h>

int helper_thread_places(cpu_set_t *cpus)
{
    CPU_ZERO(cpus);
    if (omp_get_proc_bind() == omp_proc_bind_false)
        return 0;
    for (int place = 0; place < omp_get_num_places(); place++) {
        int count = omp_get_place_num_procs(place);
        int *ids = calloc((size_t)count + 1, sizeof *ids);
        if (ids)
            omp_get_place_proc_ids(place, ids);
        for (int i = 0; ids && i < count; i++)
            CPU_SET((size_t)ids[i], cpus);
        free(ids);
    }
    return CPU_COUNT(cpus);
}

int helper_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    cpu_set_t cpus;
    sigset_t all, before;

    pthread_attr_init(&attributes);
    if (helper_thread_places(&cpus) > 0)
        pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int reason = pthread_create(thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (reason == 0)
        pthread_setname_np(*thread, name);
    return reason;
}
