SELECT DISTINCT r.name AS reader, COUNT(*) AS loans, SUM(DISTINCT b.price) total, l.*,
  CASE WHEN MAX(l.due) < CURRENT_DATE THEN 'late' WHEN MIN(l.due) IS NULL THEN 'open' ELSE 'in time' END state,
  CASE r.kind WHEN 1 THEN 'child''s' ELSE NULL END, CAST(l.fee AS DECIMAL(6, 2)) || ' EUR'
FROM readers r
  INNER JOIN loans AS l ON l.reader = r.id AND NOT l.returned
  LEFT OUTER JOIN (SELECT isbn, price FROM library.books WHERE price > 1.5e1) AS b (isbn, price) USING (isbn)
  NATURAL FULL JOIN branches CROSS JOIN (days d RIGHT JOIN hours ON d.id = hours.day), rooms
WHERE (r.city = 'Paris' OR r.city LIKE :pattern) AND r.age NOT BETWEEN 18 AND -1 + ?
  AND l.state IN ('a', 'b') AND r.id NOT IN (SELECT reader FROM blocked) AND "odd ""name""" IS NOT DISTINCT FROM 3
  /* nobody who has read nothing */ AND EXISTS (SELECT 1 FROM loans WHERE loans.reader = r.id)
GROUP BY r.name, r.city
HAVING COUNT(*) > 3 AND (AVG(l.days), 2) <> (14, 2)
ORDER BY total DESC NULLS LAST, reader ASC
LIMIT 10 OFFSET 20
