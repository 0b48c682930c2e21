/* Checks of the data that was read. Each adds its result to the report. */
#pragma once

#include "prep/audit/audit_shard.h"

void audit_check_labels(struct audit *a);
int audit_check_duplicates(struct audit *a, struct error *e);
int audit_check_mixing(struct audit *a, struct error *e);
void audit_check_balance(struct audit *a);
void audit_check_manifest(struct audit *a);
void audit_check_names(struct audit *a); /* names of files and of classes */
int audit_check_plan(struct audit *a, struct error *e);
