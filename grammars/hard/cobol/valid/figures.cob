Identification Division. Program-Id. Figures Recursive.
Data Division.
Working-Storage Section.
01 a pic 9(4). 01 b pic zz9.9-. 01 c pic +9(3),999.99 display. 01 to-name pic x. 77 k index external.
01 d comp. 01 f packed-decimal computational trailing.
Procedure Division.
    Add a b 1.5 to c d rounded. Add a to b giving c. Add 1 2 3 giving a end-add
    Subtract a, b from c giving d rounded on size error display all "*" not on size error continue end-subtract
    Multiply a by b. Multiply 2 by a giving b c end-multiply
    Divide a into b. Divide a by 3 giving b remainder c end-divide
    Compute a = - b * ( c + 2 ) / ( d ** -2 ) end-compute
    Perform calc varying a from 1 by 1 until a > 10 after b from 1 by 2 until b >= 5
    If a equal to b or greater than c and < 9 move zeros to a else if b is positive display a b else display high-values
    end-if end-if.
    Open i-o master extend journal, input others output far.
    Start master key is not less than a invalid key display "?" end-start.
    Read master record key is a invalid key move 1 to b not invalid display b end-read.
    Rewrite master-record from a end-rewrite. Delete master record.
    Write journal-line from line-out after advancing 2 lines end-write. Write x before page.
    Sort work-file on ascending key a b descending c using in-file giving out-file.
calc section. exit section. exit perform cycle. exit paragraph. stop "wait".
    accept a from day accept b from time accept c.
