program Primes(input, output);
{ The sieve of Eratosthenes, and a queue of twin primes. }
label 10, 99;
const
  Limit = 1000; Negative = -Limit; Half = 0.5E-1; Title = 'Eratosthenes'' sieve'; Blank = ' ';
type
  Range = 2..Limit;
  Color = (red, green, blue);
  Sieve = packed array [Range] of Boolean;
  Link = ^Node;
  Node = record
    low, high : Range;
    next : Link;
    case known : Boolean of
      true : (name : packed array [1..8] of char; case Color of red, green : (x : real;); blue : ());
      false : ()
  end;
  Digits = set of 0..9; Words = file of char; Empty = record end;
var
  marked : Sieve;
  first, last : Link;
  i, count : integer;
  matrix : array [1..3, Color] of array (. -1..+1 .) of real;

procedure Append(var head : Link; a, b : Range); forward;

function Gcd(a, b : integer) : integer;
begin
  while b <> 0 do
    begin
      if a > b then a := a - b else
        b := b mod a (* what is
          left { of a * b }
    end;
  Gcd := a;
end;

procedure Append;
  var fresh : Link;
begin
  new(fresh, true);
  with fresh^, head^.next^ do begin low := a; high := b; next := nil end;
  if head = nil then head := fresh
  else begin last^.next := fresh; last := fresh end
end;

begin
  for i := 2 to Limit do marked[i] := false;
  i := 2;
  repeat
    if not marked[i] then
      begin
        count := 2 * i;
        while (count <= Limit) and (i * i >= 4) do begin marked[count] := true; count := count + i end;
      end;
    i := i + 1;
    if i = 500 then goto 10
  until (i > Limit div 2) or (i in [1, 3..5, Limit]);
  10: for i := Limit downto 2 do
    if not (marked[i] or marked[i - 2]) then Append(first, i - 2, i);
  case count mod 4 of
    0, 1 : writeln(Title : 20, count : 8, Half * count : 10 : 2);
    -2 : ;
    3 : begin end
  end;
  99: writeln
end.
