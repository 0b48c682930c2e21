#include "daemon/http/crew.h"

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

Test(crew, tasks_wait_beside_each_other, .timeout = 600)
{
    struct crew_task tasks[8];
    struct crew *crew;
    struct error e;

    pthread_barrier_init(&all_in, NULL, 8);
    cr_assert_eq(crew_create(8, &crew, &e), 0);
    for (int round = 0; round < 20; round++) {
        done = 0;
        for (int i = 0; i < 8; i++) {
            tasks[i] = (struct crew_task){wait_for_all, NULL, NULL};
            cr_assert(crew_do(crew, &tasks[i]));
        }
        while (done < 8)
            usleep(100);
    }
    crew_destroy(crew);
    pthread_barrier_destroy(&all_in);
}

/* The only thread is idle when two tasks come at once, each of which waits for the other: it must
 * not be counted on for both. */
Test(crew, an_idle_thread_is_counted_on_once, .timeout = 600)
{
    struct crew_task tasks[3];
    struct crew *crew;
    struct error e;

    pthread_barrier_init(&all_in, NULL, 2);
    for (int round = 0; round < 100; round++) {
        done = 0;
        cr_assert_eq(crew_create(2, &crew, &e), 0);
        tasks[0] = (struct crew_task){take_a_while, NULL, NULL};
        cr_assert(crew_do(crew, &tasks[0]));
        while (done < 1)
            usleep(100);
        usleep(1000); /* it becomes idle */
        for (int i = 1; i < 3; i++) {
            tasks[i] = (struct crew_task){wait_for_all, NULL, NULL};
            cr_assert(crew_do(crew, &tasks[i]));
        }
        crew_destroy(crew);
        cr_assert_eq(done, 3);
    }
    pthread_barrier_destroy(&all_in);
}

Test(crew, what_was_taken_is_done_before_it_is_dismissed, .timeout = 600)
{
    struct crew_task tasks[50];
    struct crew *crew;
    struct error e;

    cr_assert_eq(crew_create(3, &crew, &e), 0);
    for (int i = 0; i < 49; i++) {
        tasks[i] = (struct crew_task){take_a_while, NULL, NULL};
        cr_assert(crew_do(crew, &tasks[i]));
    }
    crew_dismiss(crew);
    cr_assert_eq(done, 49);
    tasks[49] = (struct crew_task){take_a_while, NULL, NULL};
    cr_assert_not(crew_do(crew, &tasks[49]));
    crew_dismiss(crew);
    crew_destroy(crew);
    cr_assert_eq(done, 49);
    crew_destroy(NULL);
}
