`timescale 1ns / 100ps
`default_nettype none
`define DEPTH 16 // words

/* A synchronous queue. */
(* keep_hierarchy = "yes", top *)
module fifo #(parameter WIDTH = 8, parameter integer DEPTH = `DEPTH, localparam [3:0] MODE = 4'b10_x?)
  (input wire clk, input rst_n, push, pop,
   input [WIDTH-1:0] data_in,
   output reg signed [WIDTH - 1 : 0] data_out = 0,
   output full, inout tri1 [3:0] bus);

  reg [WIDTH-1:0] memory [0:DEPTH-1], spare;
  integer i, count = 0;
  real ratio = 1.5e-3;
  wire #(1:2:3, 4) empty = count == 0, unused;
  supply0 gnd;
  event overflow;

  assign full = (count >= DEPTH) ? 1'b1 : 1'b0, bus[3:2] = {2{push & ~pop}};
  assign (strong1, pull0) #5 {unused, bus[0]} = ^data_in ~^ |spare;

  always @(posedge clk or negedge rst_n)
    if (!rst_n) begin
      count <= 0;
      data_out <= {WIDTH{1'b0}};
      for (i = 0; i < DEPTH; i = i + 1) memory[i] <= 'h0;
    end else begin : update
      integer delta;
      case ({push, pop})
        2'b10: if (full) -> overflow; else begin memory[count] <= #1 data_in; count <= count + 1; end
        2'b01, 2'b1x: data_out <= memory[count][7 -: 8];
        default ;
      endcase
    end
endmodule
