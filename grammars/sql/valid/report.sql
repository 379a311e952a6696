-- Monthly sales by region, with the share of each product
WITH RECURSIVE months (m, n) AS (
    SELECT DATE '2026-01-01', 1
    UNION ALL
    SELECT m + INTERVAL '1' MONTH, n + 1 FROM months WHERE n < 12
),
sales AS (
    SELECT s.region, s.product_id, EXTRACT(MONTH FROM s.sold_at) AS mon,
           SUM(s.qty * s.price) AS amount, COUNT(*) AS n
    FROM shop.sales AS s
    WHERE s.sold_at BETWEEN DATE '2026-01-01' AND DATE '2026-12-31'
      AND s.status <> 'void' AND (s.qty > 0 OR s.price IS NOT NULL)
    GROUP BY s.region, s.product_id, EXTRACT(MONTH FROM s.sold_at)
    HAVING SUM(s.qty) > 10
)
SELECT r.name region, p.name AS "Product ""name""", sales.mon, amount,
       amount / SUM(amount) OVER (PARTITION BY sales.region ORDER BY mon
           ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS share,
       RANK() OVER w, LAG(amount, 1) OVER (w ORDER BY mon DESC NULLS LAST),
       COUNT(DISTINCT p.id) FILTER (WHERE p.active) OVER (),
       CASE WHEN amount > 1000 THEN 'big' WHEN amount > 100 THEN 'mid' ELSE 'small' END,
       CASE r.code WHEN 1 THEN 'n' END
FROM sales
JOIN regions r ON r.id = sales.region
LEFT OUTER JOIN products p USING (product_id)
CROSS JOIN months
NATURAL INNER JOIN calendar
FULL JOIN (a RIGHT JOIN b ON a.x = b.x) ON TRUE, LATERAL (SELECT 1) AS one (x)
WHERE EXISTS (SELECT * FROM stock WHERE stock.p = p.id)
  AND p.id IN (SELECT product_id FROM featured) AND NOT r.code NOT IN (1, 2, -3)
  AND p.name LIKE 'T%' ESCAPE '!' AND p.name NOT LIKE '%it''s%'
  AND amount >= ALL (SELECT limit_ FROM limits)
  AND (r.opened IS NOT DISTINCT FROM p.launched) IS NOT FALSE
WINDOW w AS (PARTITION BY sales.region, mon ORDER BY amount DESC), v AS (RANGE UNBOUNDED PRECEDING)
ORDER BY region ASC NULLS FIRST, 3 DESC, amount - - 1
LIMIT 100 OFFSET 20;
