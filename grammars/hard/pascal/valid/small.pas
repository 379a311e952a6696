program P; begin end.
