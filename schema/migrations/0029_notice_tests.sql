-- A test of a target does not wait behind the notices that it could not be told.

create index notice_tests on notice (id) where state = 'waiting' and kind = 'test';
