/* Private to daemon/store. */
#pragma once

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/store/store.h"

#define STORE_READERS  4
#define SQL_STATEMENTS 128
#define SQL_BUSY_MS    5000

#define SQL_MAGIC   0x50a1c0deu
#define STORE_MAGIC 0x7a1e57a6u

struct sql {
    unsigned magic;
    sqlite3 *db;
    bool durable;          /* use synchronous=FULL */
    store_fact_hook *hook; /* set by store_on_fact */
    store_rollback_hook *rollback_hook;
    void *hook_context;
    int count;
    struct {
        const char *sql; /* a literal, identified by its address */
        sqlite3_stmt *statement;
    } statements[SQL_STATEMENTS];
};

struct store {
    unsigned magic;
    struct store_identity identity;
    char *jobs_dir;
    pthread_mutex_t writing; /* held from sql_write_begin to sql_write_end */
    struct sql writer;
    double busy_at;    /* monotonic time of the last timeout on another program's lock; 0: none */
    int backups;       /* backups in progress */
    pthread_t watched; /* set by store_watch_thread */
    _Atomic double waits_since; /* monotonic; when the watched thread began to wait for the writer;
                                   0: it is not */
    bool watches;
    struct {
        void (*committed)(void *context);
        void *context;
    } listeners[STORE_LISTENERS]; /* guarded by `writing` */
    _Atomic uint64_t commits;
    pthread_mutex_t counting; /* guards `counted` */
    struct {
        uint64_t commits;
        unsigned states;
        int64_t jobs;
    } counted;                /* cache of job_search.c */
    pthread_mutex_t grouping; /* guards the four fields below */
    pthread_cond_t group_written;
    struct sql_member *group, **group_end; /* pending writes in order */
    bool group_leads;
    pthread_mutex_t lending; /* guards free_readers */
    pthread_cond_t returned;
    struct sql readers[STORE_READERS];
    struct sql *free_readers[STORE_READERS];
    int free_count;
};
