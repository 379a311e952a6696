select selected, fromage froms, ordering AS asc_, nullable, notes, inn, islands, of, _all
from unions as joined, "select" "from" where wherever not in (1) and android or origin between a and b;
select case when casement then thence else elsewhere end ended from t order by orders desc, ascii asc
limit 5 offset 2;
SeLeCt 1 InTeRsEcT sElEcT 2 uNiOn SELECT(3)FROM(SELECT 4)AS x--tight
;insert into inserts(a,b)values(1,-1),('x',not null);update sets set set1=1,limit_=(select 2);
create table tables ("primary" int primary key, n decimal(10) not null)
