/* Private to this folder. */
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
    bool durable;          /* synchronous=FULL */
    store_fact_hook *hook; /* of store_on_fact */
    store_rollback_hook *rollback_hook;
    void *hook_context;
    int count;
    struct {
        const char *sql; /* a literal: known by its address */
        sqlite3_stmt *statement;
    } statements[SQL_STATEMENTS];
};

struct store {
    unsigned magic;
    struct store_identity identity;
    char *jobs_dir;
    pthread_mutex_t writing; /* from sql_write_begin to sql_write_end */
    struct sql writer;
    double busy_at;             /* monotonic: last vain wait for another program's lock; 0: none */
    int backups;                /* under way */
    pthread_t watched;          /* store_watch_thread */
    _Atomic double waits_since; /* monotonic: the watched thread waits for the writer; 0: not */
    bool watches;
    struct {
        void (*committed)(void *context);
        void *context;
    } listeners[STORE_LISTENERS]; /* guarded by writing */
    _Atomic uint64_t commits;
    pthread_mutex_t counting; /* guards counted */
    struct {
        uint64_t commits;
        unsigned states;
        int64_t jobs;
    } counted;                /* cached by job_search.c */
    pthread_mutex_t grouping; /* guards the four below */
    pthread_cond_t group_written;
    struct sql_member *group, **group_end; /* waiting writes in order */
    bool group_leads;
    pthread_mutex_t lending; /* guards free_readers */
    pthread_cond_t returned;
    struct sql readers[STORE_READERS];
    struct sql *free_readers[STORE_READERS];
    int free_count;
};
