-- Training accuracy: the share of a step's images whose label had the largest logit. Null in steps of older workers.

alter table step_metric add column top1 real;
