PREFIX dc: <http://purl.org/dc/elements/1.1/>
PREFIX ns: <http://example.org/ns#>
INSERT DATA { <http://example/book1> dc:title "A new book" ; dc:creator ns:A.N.Other . GRAPH ns:g { ns:s a ns:T } . ns:t ns:u () } ;
DELETE DATA { ns:book2 ns:price -1.50, +2 };
WITH <http://example/addresses>
DELETE { ?person ns:givenName 'Bill' } INSERT { ?person ns:givenName 'William' ; ns:tags ("a" [ ns:k 1 ]) }
USING <http://example/a> USING NAMED ns:b
WHERE { ?person ns:givenName 'Bill' } ;
INSERT { [] ns:sees [ ] } WHERE { SELECT ?x WHERE { ?x ?y ?z } ORDER BY ns:f(?x) LIMIT 3 VALUES ?x { 1 } };
DELETE WHERE { ?s ?p ?o } ;
LOAD SILENT <http://example/data.ttl> INTO GRAPH ns:g ; CLEAR NAMED ; DROP SILENT DEFAULT; DROP ALL ; CLEAR GRAPH ns:g ;
CREATE GRAPH <g> ; ADD SILENT DEFAULT TO GRAPH <g> ; MOVE <g> TO <h> ; COPY ns:h TO DEFAULT ;
