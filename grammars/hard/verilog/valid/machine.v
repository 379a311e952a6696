module machine (input wire clk, input wire [1:0] wire_in, output reg [2:0] state);
  localparam IDLE = 3'd0, RUN = 3'd1, begin_state = 3'd2, endmodule_x = 3'b1zz;
  reg [2:0] next;
  tri [1:0] module_bus, if_, case0;
  event done, again[1:0];
  always @(*) begin
    next = state;
    casex (state)
      IDLE : begin
        if (wire_in[0] && !(wire_in >> 1)) next = RUN;
        else if (wire_in == 2'b11) next = begin_state;
        else ;
      end
      RUN, begin_state: next = (state < 3'o5) ? IDLE : state - (* parallel *) 1 ;
    endcase
  end
  always @ (posedge clk) state <= next ;
  always begin -> again[0]; @again ; @(again[1] or done) tick; end // "tick" is a task
  task tick ; begin $write ; $write ("%t", $time) ; $fwrite(1, , 2) ; end endtask
  initial if (state) fork join else begin end
endmodule
