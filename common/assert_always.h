/* Assertions of every build. One that fails writes a line to the log and aborts. What is stored
 * stays valid: SQLite rolls back, trainings continue without their daemon, and a run resumes from
 * its last checkpoint. A worker leaves a core dump, traind and trainctl do not (doc/security.md).
 *
 * They are for faults of the program itself. A file, a request, another program or a lack of memory
 * must never make one fail: these are errors (error.h). They may not take measurable time. */
#pragma once

#define assert_always(condition) assert_that(condition, #condition)

#define assert_that(condition, words)                                                              \
    (__builtin_expect(!!(condition), 1) ? (void)0                                                  \
                                        : assert_failed(words, __func__, __FILE__, __LINE__))

/* Objects whose struct is private begin with `unsigned magic`, a number of their type's own. The
 * function that creates one sets it, the public functions check it, and the one that destroys it
 * clears it, so that another type, a destroyed object or overwritten memory is noticed at once. */
#define assert_object(object, number)                                                              \
    assert_that((object) && (object)->magic == (number), #object "->magic == " #number)

/* Checks and clears; volatile, as compilers drop a store before free(). */
#define assert_object_ends(object, number)                                                         \
    (assert_object(object, number), (void)(*(volatile unsigned *)&(object)->magic = 0))

void assert_failed(const char *condition, const char *function, const char *file, int line)
    __attribute__((noreturn, cold));
