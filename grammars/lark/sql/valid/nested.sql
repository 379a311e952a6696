/* a report ** with * stars / and -- dashes */
SELECT r.year, r."Größe", -(SUM(r.amount) * 100) / NULLIF(t.total, 0) % 7 AS "per ""cent""",
  CASE WHEN r.amount IS NULL OR NOT r.amount BETWEEN -1 AND 1 + 1 THEN 'it''s ''none'''
       WHEN r.note LIKE '%\_%' AND r.note NOT LIKE '日本--%' THEN '' ELSE '/* text */' END
FROM (SELECT year, amount, note, "Größe" FROM sales.rows WHERE amount <> 0.5e-3 OR (TRUE)) AS r
  INNER JOIN totals t ON t.year = r.year AND t.kind IN (SELECT kind FROM kinds)
  CROSS JOIN (SELECT DISTINCT a FROM b) c, other FULL JOIN last ON FALSE
WHERE EXISTS (SELECT * FROM x WHERE x.id >= r.id) AND r.name || '-' || t.name != 'ä' -- end
GROUP BY r.year, r.a + r.b HAVING COUNT(*) > 10 AND MIN(DISTINCT r.a, r.b) <= f()
EXCEPT SELECT t.*, 1.5E+3, * FROM t
