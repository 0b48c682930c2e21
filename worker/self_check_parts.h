/* What the files self_check*.c share. Each adds its figures to the report and its verdicts to the
 * list (common/check.h). */
#ifndef TRAIND_WORKER_SELF_CHECK_PARTS_H
#define TRAIND_WORKER_SELF_CHECK_PARTS_H

#include <jansson.h>
#include <stdbool.h>

/*
 * self_check_speed.c. Figures:
 *   cores               hardware threads this process may use
 *   gflops              SGEMM on all of them at once, product after product, each waiting for the
 *                       slowest, as a step does
 *   core_types          [{"type", "cores", "gflops"}]: one core of each type by itself
 *   memory_gb_per_sec   copying on all of them (read and written bytes)
 *   clock_ghz           of dependent additions, one a cycle on the processors of today
 */
void self_check_speed(json_t *report, json_t *list);

/* self_check_data.c: one data set; false: it is not fit. Adds {"path", "format", "shards",
 * "images", "manifest"} to the report's array "data". */
bool self_check_data(const char *path, json_t *report, json_t *list);

#endif
