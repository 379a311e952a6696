CREATE TABLE t (id INTEGER PRIMARY KEY NOT NULL, name VARCHAR(40));
INSERT INTO t (id, name) VALUES (1, 'a'), (2, NULL);
INSERT INTO t SELECT id, CASE WHEN id > 3 THEN 'x' ELSE lower(name) END FROM s;
UPDATE t SET name = name || '!', id = -id + 1 WHERE id <> 2;
DELETE FROM t WHERE name IS NOT NULL
