/*
 * Assertions that are active in every build. One that fails writes a line to the log and aborts.
 * Stored data stays valid: SQLite rolls back, trainings continue without their daemon, and a run
 * resumes from its last checkpoint. A worker leaves a core dump, traind and trainctl do not
 * (doc/security.md).
 *
 * Use them only for faults of the program itself. A file, a request, another program or a lack of
 * memory must never make one fail: those are errors (error.h). Their cost must not be measurable.
 */
#pragma once

#define assert_always(condition) assert_that(condition, #condition)

#define assert_that(condition, text)                                                               \
    (__builtin_expect(!!(condition), 1) ? (void)0                                                  \
                                        : assert_failed(text, __func__, __FILE__, __LINE__))

/* A struct that is private to its file begins with `unsigned magic`, a number of its own type. The
 * function that creates the object sets it, the public functions check it, and the one that
 * destroys the object clears it, so that an object of another type, a destroyed one or overwritten
 * memory is noticed at once. */
#define assert_object(object, number)                                                              \
    assert_that((object) && (object)->magic == (number), #object "->magic == " #number)

/* Checks and clears the number; volatile, because compilers drop a store before free(). */
#define assert_object_ends(object, number)                                                         \
    (assert_object(object, number), (void)(*(volatile unsigned *)&(object)->magic = 0))

void assert_failed(const char *condition, const char *function, const char *file, int line)
    __attribute__((noreturn, cold));
