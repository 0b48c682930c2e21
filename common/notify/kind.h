/*
 * The kinds of notices: THE table. What a job's key notify and an administrator's rules may name,
 * the JSON Schema and the pages come from it, or are checked against it by tests/api/notices/.
 */
#pragma once

#include <stddef.h>

enum notice_kind {
    NOTICE_SUCCEEDED,
    NOTICE_FAILED,
    NOTICE_CANCELLED,
    NOTICE_ATTEMPT_FAILED,
    NOTICE_TARGET_MET,
    NOTICE_STRAGGLER,
    NOTICE_STALLED,
    NOTICE_NODE_DRAINED,
    NOTICE_SWEEP_DONE,
    NOTICE_RULE_KINDS,               /* rules may name those above */
    NOTICE_TEST = NOTICE_RULE_KINDS, /* somebody asked for it */
    NOTICE_KINDS
};

#define NOTICE_BIT(kind) (1u << (kind))
/* Of a rule without "on". */
#define NOTICE_DEFAULT_KINDS                                                                       \
    (NOTICE_BIT(NOTICE_SUCCEEDED) | NOTICE_BIT(NOTICE_FAILED) | NOTICE_BIT(NOTICE_CANCELLED))

/* "target_met"; NULL behind the last. */
const char *notice_kind_name(size_t kind);
/* NOTICE_KINDS for a name that is none. */
enum notice_kind notice_kind_of(const char *name);

/* What is sent: the notice as JSON, or {"text": ...} as chat services take it. */
enum notice_format { NOTICE_JSON, NOTICE_TEXT, NOTICE_FORMATS };
extern const char *const notice_format_words[NOTICE_FORMATS + 1]; /* ends with NULL */
const char *notice_format_name(size_t format);                    /* NULL behind the last */
enum notice_format notice_format_of(const char *name);            /* NOTICE_FORMATS: it is none */
