/**/int main(){return 0;}/***/ //end
