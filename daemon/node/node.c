#include "daemon/node/node.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/log.h"
#include "common/number.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "common/system/spawn.h"
#include "config.h"
#include "daemon/store/event.h"

#define OWN_CHECKS       20  /* of the node itself, used for comparison */
#define PEERS_MIN        3   /* minimum for a median */
#define PEERS_MOST       128 /* newest of other nodes; more would not improve the median */
#define CLOCK_OFF        30  /* difference in seconds that is reported */
#define TELL_SECONDS     2
#define DATA_SEEN_BEFORE 86400.0 /* seconds for which another node's view of the data is valid */

bool node_name_is_valid(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  ".-_";
    size_t length = strlen(name);

    return length > 0 && length < NODE_NAME_BYTES && strspn(name, letters) == length &&
           name[0] != '.' && name[0] != '-' && strcasecmp(name, "ALL") != 0;
}

char *node_own_name(char name[NODE_NAME_BYTES])
{
    memset(name, 0, NODE_NAME_BYTES);
    gethostname(name, NODE_NAME_BYTES - 1);
    name[strcspn(name, ".")] = '\0';
    if (!node_name_is_valid(name))
        snprintf(name, NODE_NAME_BYTES, "localhost");
    return name;
}

enum figure { GFLOPS, MEMORY };

static double node_figure_of(const struct node_figures *f, enum figure which)
{
    return which == GFLOPS ? f->gflops : f->memory_gb_per_sec;
}

/* Returns the median of those with this figure; NAN: too few. *used: their number. */
static double node_usual_figure(const struct node_figures *list, size_t count, enum figure which,
                                size_t *used)
{
    double *values = xmalloc((count + 1) * sizeof *values);
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (node_figure_of(&list[i], which) > 0)
            values[n++] = node_figure_of(&list[i], which);
    double middle = n >= PEERS_MIN ? number_median(values, n) : NAN;
    free(values);
    *used = n;
    return middle;
}

static enum node_verdict node_worse_verdict(enum node_verdict a, enum node_verdict b)
{
    return a > b ? a : b;
}

static void node_set_reason(char reason[NODE_REASON_BYTES], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void node_set_reason(char reason[NODE_REASON_BYTES], const char *format, ...)
{
    size_t used = strlen(reason);
    va_list args;

    if (used && used + 2 < NODE_REASON_BYTES)
        used += (size_t)snprintf(reason + used, NODE_REASON_BYTES - used, "; ");
    va_start(args, format);
    vsnprintf(reason + used, NODE_REASON_BYTES - used, format, args);
    va_end(args);
}

static enum node_verdict node_compare(const struct node_figures *f, enum figure which,
                                      double median, const char *words,
                                      const struct node_limits *limits,
                                      char reason[NODE_REASON_BYTES])
{
    double value = node_figure_of(f, which), behind = 1 - value / median;

    if (!(value > 0) || !(behind >= limits->slow))
        return NODE_FINE;
    node_set_reason(reason, "%s %.0f %% slower than %s: %.1f, not %.1f %s",
                    which == GFLOPS ? "SGEMM is" : "memory is", 100 * behind, words, value, median,
                    which == GFLOPS ? "GFLOP/s" : "GB/s");
    return which == GFLOPS && limits->drain > 0 && behind >= limits->drain ? NODE_DRAIN : NODE_SLOW;
}

enum node_verdict node_judge_speed(const struct node_figures *figures,
                                   const struct node_peers *peers, const struct node_limits *limits,
                                   char reason[NODE_REASON_BYTES])
{
    enum node_verdict verdict = NODE_FINE;
    char words[160];
    size_t n;

    reason[0] = '\0';
    for (int which = GFLOPS; which <= MEMORY; which++) {
        enum figure f = (enum figure)which;
        double median = node_usual_figure(peers->others, peers->other_count, f, &n);
        snprintf(words, sizeof words, "the median of %zu other%s of its kind (%.96s)", n, plural(n),
                 peers->kind);
        enum node_verdict by_others = node_compare(figures, f, median, words, limits, reason);
        verdict = node_worse_verdict(verdict, by_others);
        if (by_others != NODE_FINE)
            continue; /* reported once, by comparison with others if possible */
        median = node_usual_figure(peers->own, peers->own_count, f, &n);
        snprintf(words, sizeof words, "its own median of %zu earlier check%s", n, plural(n));
        verdict =
            node_worse_verdict(verdict, node_compare(figures, f, median, words, limits, reason));
    }
    return verdict;
}

struct reading {
    const char *kind, *partition, *phase, *outcome, *words, *version, *mpi;
    const json_t *checks, *data;
    double t;
    int64_t cores, job_id, load;
    bool late; /* delivered late */
    struct node_figures figures;
};

static const char *node_report_text(const json_t *report, const char *key, bool needed,
                                    struct problems *problems)
{
    const json_t *value = json_object_get(report, key);
    char pointer[64];

    snprintf(pointer, sizeof pointer, "/%s", key);
    if (json_is_string(value))
        return json_string_value(value);
    if (needed || (value && !json_is_null(value)))
        problems_add(problems, pointer, NULL, "must be a string");
    return NULL;
}

static double node_report_number(const json_t *report, const char *key, bool needed,
                                 struct problems *problems)
{
    const json_t *value = json_object_get(report, key);
    char pointer[64];

    snprintf(pointer, sizeof pointer, "/%s", key);
    if (json_is_number(value) && json_number_value(value) >= 0 && json_number_value(value) < 1e18)
        return json_number_value(value);
    if (needed || (value && !json_is_null(value)))
        problems_add(problems, pointer, NULL, "must be a number from 0");
    return NAN;
}

static int64_t node_whole_of(const json_t *report, const char *key, struct problems *problems)
{
    double value = node_report_number(report, key, false, problems);
    return isnan(value) ? 0 : (int64_t)value;
}

static void node_check_word(const char *pointer, const char *word, const char *const *allowed,
                            const char *words, struct problems *problems)
{
    for (; word && *allowed; allowed++)
        if (strcmp(word, *allowed) == 0)
            return;
    if (word)
        problems_add(problems, pointer, NULL, "must be %s, not \"%.40s\"", words, word);
}

static void node_read_report(const json_t *report, double now, struct reading *r,
                             struct problems *problems)
{
    static const char *const phases[] = {"prolog", "epilog", "self", NULL};
    static const char *const outcomes[] = {"fine", "node", "data", "scratch", NULL};

    *r = (struct reading){
        .kind = node_report_text(report, "kind", true, problems),
        .partition = node_report_text(report, "partition", false, problems),
        .phase = node_report_text(report, "phase", true, problems),
        .outcome = node_report_text(report, "outcome", true, problems),
        .words = node_report_text(report, "reason", false, problems),
        .version = node_report_text(report, "version", false, problems),
        .mpi = node_report_text(report, "mpi", false, problems),
        .checks = json_object_get(report, "checks"),
        .data = json_object_get(report, "data"),
        .t = node_report_number(report, "t", true, problems),
        .cores = node_whole_of(report, "cores", problems),
        .job_id = node_whole_of(report, "job", problems),
        .load = node_whole_of(report, "load", problems),
        .late = json_is_true(json_object_get(report, "late")),
        .figures = {node_report_number(report, "gflops", false, problems),
                    node_report_number(report, "memory_gb_per_sec", false, problems),
                    node_report_number(report, "clock_ghz", false, problems)},
    };
    node_check_word("/phase", r->phase, phases, "prolog, epilog or self", problems);
    node_check_word("/outcome", r->outcome, outcomes, "fine, node, data or scratch", problems);
    if (r->t > now)
        r->t = now;
}

static void node_say_failures(const struct reading *r, char reason[NODE_REASON_BYTES])
{
    const json_t *item;
    size_t i;

    json_array_foreach (r->checks, i, item) {
        const char *check = json_string_value(json_object_get(item, "check"));
        const char *found = json_string_value(json_object_get(item, "found"));
        if (check && found && json_is_false(json_object_get(item, "ok")))
            node_set_reason(reason, "%.40s: %.300s", check, found);
    }
    if (r->words)
        node_set_reason(reason, "%.400s", r->words);
}

/* Finds a node that sees data missing on this one; NULL: none. The caller frees it. */
static int node_find_witness(struct store *s, const struct reading *r, const char *name,
                             char **witness, struct error *e)
{
    const json_t *item;
    int status = 0;
    size_t i;

    *witness = NULL;
    json_array_foreach (r->data, i, item) {
        const char *path = json_string_value(json_object_get(item, "path"));
        if (path && json_is_false(json_object_get(item, "ok")) && !status && !*witness)
            status = store_node_witness(s, name, path, r->t - DATA_SEEN_BEFORE, witness, e);
    }
    return status;
}

static int node_judge_figures(struct store *s, const char *name, const struct reading *r,
                              const struct node_limits *limits, double now,
                              struct node_judged *judged, struct error *e)
{
    struct node_figures own[OWN_CHECKS], others[PEERS_MOST];
    struct node_peers peers = {.own = own, .others = others, .kind = r->kind};

    if (r->load > 0) {
        judged->verdict = NODE_UNKNOWN;
        node_set_reason(judged->reason,
                        "its speed was not judged: %lld other thread%s computing when it was "
                        "checked",
                        (long long)r->load, plural(r->load));
        return 0;
    }
    int status = store_node_fine(s, name, r->t, own, OWN_CHECKS, &peers.own_count, e);

    if (!status)
        status = store_node_peers(s, name, r->kind, r->cores, now - NODE_CHECK_DAYS * 86400.0,
                                  others, PEERS_MOST, &peers.other_count, e);
    if (!status)
        judged->verdict = node_judge_speed(&r->figures, &peers, limits, judged->reason);
    return status;
}

/* Keeps the last verdict, because there is no new measurement. */
static int node_judge_as_before(struct store *s, const char *name, struct node_judged *judged,
                                struct error *e)
{
    struct store_nodes known;
    int status = store_node_get(s, name, &known, e);

    if (!status && known.count) {
        const struct store_node *before = &known.items[0];
        judged->verdict = before->verdict;
        if ((before->verdict != NODE_FINE || before->load > 0) && before->reason)
            node_set_reason(judged->reason, "%s", before->reason);
    }
    store_nodes_clear(&known);
    return status;
}

static int node_judge_report(struct store *s, const char *name, const struct reading *r,
                             const struct node_limits *limits, double now,
                             struct node_judged *judged, struct error *e)
{
    char *witness = NULL;

    *judged = (struct node_judged){.verdict = NODE_FINE};
    int status = r->figures.gflops > 0 ? node_judge_figures(s, name, r, limits, now, judged, e)
                                       : node_judge_as_before(s, name, judged, e);
    if (!status && strcmp(r->outcome, "data") == 0)
        status = node_find_witness(s, r, name, &witness, e);
    judged->known =
        judged->verdict == NODE_UNKNOWN || !(r->figures.gflops > 0) ? strlen(judged->reason) : 0;
    if (strcmp(r->outcome, "node") == 0 || strcmp(r->outcome, "scratch") == 0 || witness) {
        judged->verdict = NODE_DRAIN;
        node_say_failures(r, judged->reason);
    } else if (strcmp(r->outcome, "data") == 0) {
        node_set_reason(judged->reason, "the node is not at fault: job %lld was rejected",
                        (long long)r->job_id);
        node_say_failures(r, judged->reason);
    }
    if (strcmp(r->outcome, "fine") == 0 && r->words)
        node_set_reason(judged->reason, "%.400s", r->words);
    if (witness)
        node_set_reason(judged->reason, "%s has them: perhaps a mount is missing here", witness);
    if (r->figures.gflops > 0 && !r->late && fabs(now - r->t) > CLOCK_OFF)
        node_set_reason(judged->reason, "its clock is %.0f s behind traind's", now - r->t);
    if (r->figures.gflops > 0 && r->version && strcmp(r->version, PACKAGE_VERSION) != 0)
        node_set_reason(judged->reason, "its train-worker is %.40s, and traind is %s", r->version,
                        PACKAGE_VERSION);
    free(witness);
    return status;
}

static void node_tell_job(struct store *s, const char *name, const struct reading *r,
                          const struct node_judged *judged, double now)
{
    const char *news = judged->reason + judged->known;
    struct error ignored;

    if (!r->job_id || !*news)
        return;
    news += strncmp(news, "; ", 2) == 0 ? 2 : 0;
    json_t *fields = json_object();
    json_object_set_new(fields, "host", json_string(name));
    json_object_set_new(
        fields, "message",
        json_sprintf("node %s (%s): %s", name, node_verdict_name(judged->verdict), news));
    /* The job may have been removed. */
    store_event_add(s, r->job_id, 0, "warning", fields, now, &ignored);
    json_decref(fields);
}

static int node_store_report(struct store *s, const char *name, const json_t *report,
                             const struct reading *r, const struct node_judged *judged, double now,
                             struct error *e)
{
    char *text = must_alloc(json_dumps(report, JSON_COMPACT | JSON_REAL_PRECISION(12)));
    struct store_node_check check = {
        .node = name,
        .kind = r->kind,
        .partition = r->partition,
        .phase = r->phase,
        .reason = *judged->reason ? judged->reason : NULL,
        .report = text,
        .t = r->t,
        .cores = r->cores,
        .job_id = r->job_id,
        .load = r->figures.gflops > 0 ? r->load : 0,
        .figures = r->figures,
        .verdict = judged->verdict,
    };
    int status = store_node_check(s, &check, now, e);

    free(text);
    return status;
}

int node_report(struct store *s, const char *name, const json_t *report,
                const struct node_limits *limits, double now, struct node_judged *judged,
                struct problems *problems, struct error *e)
{
    struct reading r;

    node_read_report(report, now, &r, problems);
    if (problems->count)
        return 0;
    int status = node_judge_report(s, name, &r, limits, now, judged, e);
    if (!status)
        status = node_store_report(s, name, report, &r, judged, now, e);
    if (status)
        return status;
    if (judged->verdict > NODE_FINE)
        log_warning("node %s: %s: %s", name, node_verdict_name(judged->verdict), judged->reason);
    node_tell_job(s, name, &r, judged, now);
    return 0;
}

enum node_verdict node_verdict_now(const struct store_node *node, double now,
                                   char reason[NODE_REASON_BYTES])
{
    double days = (now - node->checked_at) / 86400;

    snprintf(reason, NODE_REASON_BYTES, "%s", node->reason ? node->reason : "");
    if (days < NODE_CHECK_DAYS || node->verdict == NODE_DRAIN)
        return node->verdict;
    snprintf(reason, NODE_REASON_BYTES, "has not been checked for %.0f days", days);
    return NODE_UNKNOWN;
}

static bool node_may_get(const struct job_spec *spec, const struct store_node *n, const char *own)
{
    if (n->verdict == NODE_DRAIN || !(n->figures.gflops > 0))
        return false;
    if (spec->cluster.launcher != JOB_LAUNCHER_LOCAL)
        return n->partition &&
               (!spec->cluster.partition || strcmp(n->partition, spec->cluster.partition) == 0);
    if (spec->cluster.host_count == 0)
        return strcmp(n->name, own) == 0;
    for (size_t i = 0; i < spec->cluster.host_count; i++) {
        size_t length = strcspn(spec->cluster.hosts[i], ":.");
        if (strlen(n->name) == length && strncmp(spec->cluster.hosts[i], n->name, length) == 0)
            return true;
    }
    return false;
}

/* Gets the usual GFLOP/s of such a node: the median of nodes of its kind with as many cores,
 * otherwise of its own checks. */
static int node_usual_gflops(struct store *s, const struct store_node *n, double now, double *usual,
                             struct error *e)
{
    struct node_figures list[PEERS_MOST > OWN_CHECKS ? PEERS_MOST : OWN_CHECKS];
    size_t count, used;
    int status = store_node_peers(s, n->name, n->kind, n->cores, now - NODE_CHECK_DAYS * 86400.0,
                                  list, PEERS_MOST, &count, e);

    *usual = status ? NAN : node_usual_figure(list, count, GFLOPS, &used);
    if (status || !isnan(*usual))
        return status;
    status = store_node_fine(s, n->name, now, list, OWN_CHECKS, &count, e);
    *usual = status ? NAN : node_usual_figure(list, count, GFLOPS, &used);
    return status;
}

int node_slowest(struct store *s, const struct job_spec *spec, double now, double *times,
                 char name[NODE_NAME_BYTES], struct error *e)
{
    char own[NODE_NAME_BYTES];
    struct store_nodes nodes;
    int status = store_node_list(s, "", -1, &nodes, e);

    *times = 1;
    if (name)
        name[0] = '\0';
    node_own_name(own);
    for (size_t i = 0; !status && i < nodes.count; i++) {
        const struct store_node *n = &nodes.items[i];
        double usual = NAN;
        if (n->verdict != NODE_SLOW || !node_may_get(spec, n, own))
            continue;
        status = node_usual_gflops(s, n, now, &usual, e);
        if (status || !(usual / n->figures.gflops > *times))
            continue;
        *times = usual / n->figures.gflops;
        if (name)
            snprintf(name, NODE_NAME_BYTES, "%s", n->name);
    }
    store_nodes_clear(&nodes);
    return status;
}

int node_tell(const char *command, const char *node, const char *reason, struct error *e)
{
    char *const argv[] = {(char *)command, (char *)node, (char *)reason, NULL};
    struct spawn_request r = {.argv = argv, .seconds = TELL_SECONDS};
    struct spawn s;
    int status = spawn_run(&r, &s, e);

    if (status == -ERR_UNREACHABLE)
        error_set(e, ERR_UNREACHABLE, "%s did not finish within %d s", command, TELL_SECONDS);
    else if (!status && s.status)
        status = error_set(e, ERR_INTERNAL, "%s failed with status %d", command,
                           WIFEXITED(s.status) ? WEXITSTATUS(s.status) : WTERMSIG(s.status));
    spawn_clear(&s);
    return status;
}
