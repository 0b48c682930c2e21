/* The words with which a rank's watcher speaks of a stall in its log: the worker writes them, the
 * daemon reads them, as a host's log comes through where its events do not. */
#ifndef TRAIND_COMMON_STALL_LINE_H
#define TRAIND_COMMON_STALL_LINE_H

#define STALL_LINE_RANK "no step for %.0f s: rank %d on %s %s" /* seconds, rank, host, one of */
#define STALL_STOPPED   "is stopped by a signal"
#define STALL_DEAD      "is dead"
#define STALL_STARVED   "gets no processor time"
#define STALL_DATA_LATE "waits for data"
#define STALL_COMPUTES  "still computes"

/* seconds, host, words: its ranks all wait */
#define STALL_LINE_HOST "no step for %.0f s on %s: %s"

#endif
