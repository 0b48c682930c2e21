-- How well the probabilities of an evaluation are calibrated, and its confusion matrix without the cells that are 0. examples: the first
-- images of a mistake, by their position in data.eval, separated by commas. Removed behind the job's row, as events are (0031_removal.sql).
alter table eval add column calibration_error real;

create table confusion (
    job_id integer not null,
    step integer not null,
    label integer not null,
    predicted integer not null,
    images integer not null,
    examples text,
    primary key (job_id, step, label, predicted)
) strict, without rowid;
