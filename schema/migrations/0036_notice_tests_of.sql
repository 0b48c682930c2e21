-- How many tests of notices somebody has just asked for.

create index notice_tests_of on notice (owner, t) where kind = 'test';
