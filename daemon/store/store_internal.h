/* The store's insides, for the files of this folder only. */
#pragma once

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/store/store.h"

#define STORE_READERS  4
#define SQL_STATEMENTS 128
#define SQL_BUSY_MS    5000 /* how long to wait for another program's lock */

struct sql {
    sqlite3 *db;
    bool durable;           /* synchronous is FULL now */
    store_witness *witness; /* of the writer: store_on_fact; NULL: none */
    store_undone *undone;   /* likewise */
    void *witness_context;
    int count;
    struct {
        const char *sql; /* a literal: known by its address */
        sqlite3_stmt *statement;
    } statements[SQL_STATEMENTS];
};

struct store {
    struct store_identity identity;
    char *jobs_dir;          /* NULL: not told yet */
    pthread_mutex_t writing; /* held from sql_write_begin to sql_write_end */
    struct sql writer;
    double busy_at;    /* monotonic: another program's lock was waited for in vain; 0: never */
    int backups;       /* under way */
    pthread_t watched; /* store_watch_thread */
    _Atomic double waits_since; /* monotonic: the watched thread waits for the writer; 0: not */
    bool watches;
    struct {
        void (*told)(void *context);
        void *context;
    } told[STORE_LISTENERS]; /* of commits; guarded by writing */
    _Atomic uint64_t commits;
    pthread_mutex_t counting; /* guards counted */
    struct {
        uint64_t commits; /* when it was counted; 0: never */
        unsigned states;
        int64_t jobs;
    } counted;                /* the last count of all jobs in some states (job_search.c) */
    pthread_mutex_t grouping; /* group.c: guards the four below */
    pthread_cond_t group_written;
    struct sql_member *group, **group_end; /* writes that wait for a leader, in order */
    bool group_leads;                      /* one is writing */
    pthread_mutex_t lending;               /* guards free_readers */
    pthread_cond_t returned;
    struct sql readers[STORE_READERS];
    struct sql *free_readers[STORE_READERS];
    int free_count;
};
