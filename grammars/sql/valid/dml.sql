insert into t (a, b, c) values (1, 'x', default), (-2.5e3, null, current_date);
INSERT INTO log SELECT * FROM (VALUES (1, 2), (3, 4)) AS v (x, y) RETURNING *;
INSERT INTO t DEFAULT VALUES;
InSeRt InTo users AS u(id,name)VALUES(?,:name) ON CONFLICT (id) DO UPDATE SET name = 'dup', (a, b) = (1, DEFAULT) WHERE u.id > 3 RETURNING id, name AS n;
INSERT INTO t TABLE other ON CONFLICT DO NOTHING;
/* raise prices ** by
   ten percent **/
UPDATE products p SET price = price * 1.10, (lo, hi) = (SELECT MIN(x), MAX(x) FROM r)
  FROM categories c WHERE c.id = p.cat AND c.name SIMILAR TO 'a|b' RETURNING p.*;
UPDATE t SET "Mixed Case" = x'00FF' || N'text' || '';
DELETE FROM t AS old USING u, v WHERE old.id = u.id AND UNIQUE (SELECT id FROM v);
WITH gone AS (SELECT 1 AS id) DELETE FROM t WHERE id = 5
