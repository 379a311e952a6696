// Keywords are names in some places only; here contextual ones are.
package words;

class Words<@A T> {
    int record = 1, sealed = 2, permits, when = 3, var, yield0 = 0, module;
    @B(name = "x", inner = @C(1)) @D
    List<@NonNull String> open(List<List<Map<String, int[]>>> to, Map.Entry<String, List<?>> with) {
        int nêtwork = to.size(), größe = record + sealed;
        this.var = this.when;
        var var = (x) -> (y) -> x + y;
        Object o = (a, b) -> { return a; }, p = () -> {}, q = super.toString();
        String s = a < b ? "é 漢字 \\ \"" : "" + '\'' + 'ß' + "😀";
        boolean less = record < sealed == sealed > record;
        return words.Words.<String>of(s).filter(String::isEmpty)/* all */.toList();//end
    }
    abstract int[] f() [];
    transient final @B int g = 1;
    ;
}
