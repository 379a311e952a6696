`resetall
// An adder of many widths, generated.
module adder(a, b, \sum[0] , .carry(c), {d, e[1:0]}, );
  parameter N = 4, M = N ** 2;
  input [N-1:0] a, b; // operands
  output [N:0] \sum[0] ;
  output c; inout d, e;
  wire [N:0] carry;
  genvar i, j;
  function automatic integer log2(input integer value, input [31:0] base);
    for (log2 = 0; value > 0; log2 = log2 + 1) value = value >>> 1;
  endfunction
  generate
    for (i = 0; i < N; i = i + 1) begin : stage
      (* full_case *) wire t;
      if (i == 0) assign t = a[i] ^ b[i]; else begin assign t = a[i] ^ b[i] ^ stage[i-1].t; end
      xor x1 (\sum[0] [i], t, carry[i]);
    end
    case (N)
      1, 2: half h (a, b);
      4: for (j = 0; j < 2; j = j + 1) full f (.x(a[j +: 1]));
      default begin end
    endcase
  endgenerate
  if (M > log2(N, 2)) initial $display("wide: %m");
endmodule
macromodule empty #(parameter X = 1) (); endmodule
