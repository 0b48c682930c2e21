#include "daemon/http/thread_pool.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static pthread_barrier_t all_in;
static atomic_int done;

static void wait_for_all(void *context)
{
    (void)context;
    pthread_barrier_wait(&all_in);
    done++;
}

static void take_a_while(void *context)
{
    (void)context;
    usleep(2000);
    done++;
}

Test(thread_pool, tasks_wait_in_parallel, .timeout = 600)
{
    struct pool_task tasks[8];
    struct thread_pool *pool;

    pthread_barrier_init(&all_in, NULL, 8);
    pool = thread_pool_create(8);
    for (int round = 0; round < 20; round++) {
        done = 0;
        for (int i = 0; i < 8; i++) {
            tasks[i] = (struct pool_task){wait_for_all, NULL, NULL};
            cr_assert(thread_pool_submit(pool, &tasks[i]));
        }
        while (done < 8)
            usleep(100);
    }
    thread_pool_destroy(pool);
    pthread_barrier_destroy(&all_in);
}

/* The only thread is idle when two tasks come at once, each of which waits for the other: it must
 * not be counted on for both. */
Test(thread_pool, an_idle_thread_is_assigned_one_task, .timeout = 600)
{
    struct pool_task tasks[3];
    struct thread_pool *pool;

    pthread_barrier_init(&all_in, NULL, 2);
    for (int round = 0; round < 100; round++) {
        done = 0;
        pool = thread_pool_create(2);
        tasks[0] = (struct pool_task){take_a_while, NULL, NULL};
        cr_assert(thread_pool_submit(pool, &tasks[0]));
        while (done < 1)
            usleep(100);
        usleep(1000); /* it becomes idle */
        for (int i = 1; i < 3; i++) {
            tasks[i] = (struct pool_task){wait_for_all, NULL, NULL};
            cr_assert(thread_pool_submit(pool, &tasks[i]));
        }
        thread_pool_destroy(pool);
        cr_assert_eq(done, 3);
    }
    pthread_barrier_destroy(&all_in);
}

Test(thread_pool, accepted_tasks_finish_before_shutdown, .timeout = 600)
{
    struct pool_task tasks[50];
    struct thread_pool *pool;

    pool = thread_pool_create(3);
    for (int i = 0; i < 49; i++) {
        tasks[i] = (struct pool_task){take_a_while, NULL, NULL};
        cr_assert(thread_pool_submit(pool, &tasks[i]));
    }
    thread_pool_shutdown(pool);
    cr_assert_eq(done, 49);
    tasks[49] = (struct pool_task){take_a_while, NULL, NULL};
    cr_assert_not(thread_pool_submit(pool, &tasks[49]));
    thread_pool_shutdown(pool);
    thread_pool_destroy(pool);
    cr_assert_eq(done, 49);
    thread_pool_destroy(NULL);
}
