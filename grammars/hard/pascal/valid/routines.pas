PROGRAM Routines;
VAR total,n:REAL;v:ARRAY(.1..10.)OF REAL;
FUNCTION Sum(FUNCTION f(x:REAL):REAL;VAR a:ARRAY[low..high:INTEGER;l2..h2:INTEGER] OF ARRAY[l3..h3:Index] OF REAL):REAL;
VAR i:INTEGER;s:REAL;
BEGIN;s:=0;FOR i:=low TO high DO s:=s+f(a(.i,i.)[i]);Sum:=s END;
Procedure Apply(Procedure p(x,y:Real;Var z:Char);Procedure q;n:Integer;Var s:Packed Array[a..b:Integer]Of Char);
  Function Square(x:Real):Real;Begin Square:=x*x End;
  Procedure Nothing;Begin End;
Begin
  If n>0 Then If n>1 Then p(1.5E+3,-n/2,s[1]) Else q Else;
  While n<>0 Do;
  Case n Of 1:q;'a','b':Begin q;;q End;Last: End;
  With a.b^[1].c(.2.),d Do Repeat;q;Until true;
  n:=((1+2)*3-4)/5+(-6) Div (7) And Not 1;
End;
BEGIN
  total:=Sum(Square,v)+SUM(sqr,v){to be *) ;
END.
