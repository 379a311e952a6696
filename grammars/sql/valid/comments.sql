
/**/-- only
 select * from select_ where where_ = 1 ; 