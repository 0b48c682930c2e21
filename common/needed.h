/*
 * Memory for small things: documents, names, lists of rows. Without it the program says so and ends
 * with status 1. Nothing is half stored: a transaction that was begun is rolled back, and trainings
 * go on without their daemon. Buffers above 1 MiB and the bodies of requests are checked instead.
 */
#pragma once

void *needed(void *memory) __attribute__((returns_nonnull)); /* memory */
