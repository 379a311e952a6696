Program Queens (output);
(* Eight queens on a board, after N. Wirth's stepwise refinement: sets of rows and diagonals. }
Const
  Size = 8; NoSolution = 'there is no solution';
Type
  Row = 1 .. Size;
  Position = Array [1 .. Size] Of Row;
Var
  rows : Set Of Row;
  rising, falling : Array [ -16 .. 16 ] Of Boolean;
  queens : Position;
  found, difference : Integer;

Procedure Print (Var p : Position);
Var column : Integer;
Begin
  For column := 1 To Size Do Write (p [column] : 3);
  WriteLn
End { Print };

Procedure Place (column : Integer);
Var r : Integer;
Begin
  For r := 1 To Size Do
    If (r In rows) And rising [column + r] And falling [column - r] Then
      Begin
        queens [column] := r;
        rows := rows - [r]; rising [column + r] := False; falling [column - r] := False;
        If column < Size Then Place (column + 1)
        Else If found = 0 Then Begin found := 1; Print (queens) End
        Else found := found + 1;
        rows := rows + [r]; rising [column + r] := True; falling [column - r] := True
      End
End;

Begin
  rows := [1 .. Size];
  For difference := -16 To 16 Do Begin rising [difference] := True; falling [difference] := True End;
  found := 0; Place (1);
  If found = 0 Then WriteLn (NoSolution) Else WriteLn (found : 1, ' solutions')
End.
