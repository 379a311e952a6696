-- what customers ordered
SELECT c.name, COUNT(DISTINCT o.id) AS orders, SUM(o.price * o.amount) total
FROM customers AS c LEFT OUTER JOIN orders o ON c.id = o.customer /* the key */
WHERE c.country IN ('DE', 'FR', 'it''s') AND o.price BETWEEN 1.5 AND 2e3 AND c.name NOT LIKE 'A%'
GROUP BY c.name HAVING COUNT(*) > 3
UNION ALL select name, 0, NULL from "old customers" where not exists (select 1 from orders)
ORDER BY total DESC, name LIMIT 10 OFFSET 20;
