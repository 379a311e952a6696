/* Lambdas, method references and anonymous classes. */
package demo;
import java.util.function.*;
import java.util.concurrent.Callable;

public class Pipeline {
    interface Stage<I, O> extends Function<I, O> {
        default <P> Stage<I, P> then(Stage<? super O, ? extends P> next) { return x -> next.apply(apply(x)); }
        static <T> Stage<T, T> identity() { return t -> t; }
    }

    class Inner { int value = Pipeline.this.hashCode(); }

    static final Comparator<String> BY_LENGTH = (String a, String b) -> Integer.compare(a.length(), b.length());
    Supplier<int[]> makeArray = () -> new int[]{1, 2, 3};
    IntFunction<int[]> ofSize = int[]::new;
    Class<?> kind = String[][].class;
    Runnable r = (Runnable & java.io.Serializable) () -> { };

    void run(Pipeline outer) throws Exception {
        Callable<Integer> task = new Callable<Integer>() {
            @Override public Integer call() { return 1 << 4 | 0b1010 & ~0x0F ^ 07_7; }
        };
        Inner inner = outer.new Inner();
        Pipeline.<String>log("a").accept("b");
        int a = 5, b = - -a + +a - --a + a++ * 2;
        try (var in = open("file"); in) {
            int c = (int) -1.5f, d = (char) (c >>> 2), e = (int) ++a;
            synchronized (this) { a <<= c > d ? c : d; }
        } catch (final RuntimeException | Error e) {
            throw e;
        } finally {
            inner = null;
        }
        try { a /= b; } catch (ArithmeticException e) { ; }
        for (;;) if (a != b || b >= 3 && a <= 4) return; else a ^= b;
    }
}
