/* How the ranks are bound and with which kernels they compute, told once when a run starts. */
#pragma once

#include "worker/run.h"

/* Gathers all ranks'. On rank 0: a table in the log, problems into r->warnings, r->binding, and
 * r->kernel_kinds. Collective. */
int binding_report(struct run *r, struct error *e);
