-- The speed of an ended job was that of its last attempt, and of a failed one that of its last step.

update job set images_per_sec = coalesce((select sum(images_per_sec * step_ms) / sum(step_ms) from step_metric
    where job_id = job.id and step <= job.step and images_per_sec > 0 and step_ms > 0), images_per_sec)
where state in ('succeeded', 'failed', 'cancelled') and (attempt > 1 or state = 'failed');
