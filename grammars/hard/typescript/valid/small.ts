if(a){f(x=>x+1)}else{g()}export const z=1;
