`include "defs.vh"
`ifdef SIMULATION
module tb;
  reg clk, rst; wire [7:0] q; time now;
  `ifndef FAST
  parameter PERIOD = 10.0;
  `else
  localparam PERIOD = 1_0;
  `endif
  fifo #(.WIDTH(8), .DEPTH(32)) dut (.clk(clk), .rst_n(~rst), .push(), .data_in(8'hA_5));
  adder #(4, 2) a0 (clk, , {q[3:0], q[7-:4]}), a1 [3:0] (q[0], rst);
  defparam tb.dut.WIDTH = 16;
  and #2 g1 (q[0], clk, rst), (q[1], clk);
  bufif0 (pull0, weak1) (q[2], clk, rst);

  initial clk = 1'b0;
  always #(PERIOD / 2) clk = ~clk;

  task automatic send(input [7:0] value, input integer times);
    repeat (times) begin
      @(posedge clk) ;
      force dut.data_in = value; wait (dut.full == 0) @(posedge clk);
      release dut.data_in;
    end
  endtask

  function [7:0] swap; input [7:0] x; reg [3:0] low; begin low = x[3:0]; swap = {low, x[7:4]}; end endfunction

  initial begin : main
    reg [8*5:1] text;
    $dumpfile("wave.vcd"); $dumpvars(0, tb);
    rst = 1; #20 rst = 0; @* q_next = @(negedge clk) swap(8'd255) + $random % 'sd5;
    send(8'o17, 3); text = "a\tb\"\101";
    fork : both
      #100 $display("%0d %b", now, q);
      begin forever @(q, rst) if (q === 8'bz) disable both; end
    join
    while (q !== 0 && !rst || now > 5) #1; casez (q) 8'b1???_????: ; default: $finish; endcase
    q_copy <= repeat (2) @(posedge clk) q; assign x = y; deassign x;
    $stop;
  end
endmodule
`endif
