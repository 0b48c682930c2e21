/*
 * Memory for which the caller has no error to return: a job's document, and the list of what is
 * wrong with it. Without it the program says so and ends with status 1. Nothing is half stored: a
 * transaction that was begun is rolled back, and trainings go on without their daemon.
 */
#pragma once

void *needed(void *memory) __attribute__((returns_nonnull)); /* memory */
