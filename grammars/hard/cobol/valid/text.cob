id division. program-id. text-work is initial program.
data division. working-storage section.
01 line-in pic x(80). 01 parts. 02 part pic x(10) occurs 8 times. 01 n pic 99 binary value 1.
01 letters pic x(26) value 'it''s a "word" list' . 01 p usage pointer. 01 eof-flag pic 9 blank when zero global.
linkage section. 01 given pic is x.
procedure division using by reference given, by value n returning result-code.
start-here. accept line-in from console; accept today from date
  initialize parts n
  unstring line-in delimited by all space or "," into part (1) part (2), part (n + 1) tallying in n end-unstring
  string part (1) ", " delimited by size part (2) (1:3) line-in (n:) delimited by space into letters with pointer n end-string
  inspect letters tallying n for all "a" before initial "z" leading spaces
  inspect letters replacing characters by "x" after initial "q" first "b" by quote all 'c' by low-values
  inspect letters converting "abc" to "ABC"
  evaluate true also n
    when n = 1 also any when n not less than 2 or equal to 3 also 4 thru 6 display "few" with no advancing
    when false also not 7 continue
    when other exit
  end-evaluate.
a-part. set p to true. set n up by 1 set eof-flag to 0
  search all parts varying n at end display "none" when part (n) = "key" and n is numeric continue end-search.
b-part. perform 3 times display function length (line-in) function current-date end-perform
  perform with test after until n is greater than 9 or (n is not negative and not eof-flag) add 1 to n end-perform
  if n < 3 next sentence else move corr a of b in c to d of e f.
  call "SUB" using by content n by reference letters by value 5 line-in returning n end-call
  exit program. goback.
