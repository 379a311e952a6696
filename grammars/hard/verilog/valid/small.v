module m(input a,output[1:0]b);assign b={a,!a};always@*case(a)0:x=1;endcase endmodule
