insert into readers (name, "Birth day", city) values ('Ada', '1815-12-10', 'London'), ('Grace', null, 'New York');
INSERT INTO loans SELECT id, isbn, true FROM copies WHERE damaged IS UNKNOWN UNION ALL VALUES (1, 'x', false) RETURNING id;
insert into counters default values;
Update readers As r Set city = 'Zürich', (name, kind) = ('O''Hara', 2), level = default Where r.id = 7 Returning *;
DELETE FROM loans l WHERE l.due < ? AND NOT EXISTS (SELECT * FROM copies c WHERE c.id = l.copy EXCEPT SELECT 1 INTERSECT DISTINCT (VALUES (2)));
update t set n = n * (1 + -.25) / 100 % 7 - 3
