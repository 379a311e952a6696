package com.example.stock;

import java.util.*;
import java.util.function.Function;
import static java.util.stream.Collectors.groupingBy;

/** Keeps count of parts. */
@SuppressWarnings({"unchecked", "rawtypes"})
public final class Inventory<K extends Comparable<K> & Cloneable, V> extends AbstractMap<K, List<V>>
        implements Iterable<K>, java.io.Serializable {
    private static final long serialVersionUID = 0x1234_5678L;
    protected volatile int size = 0, limits[] = {1, 2, 3,};
    private final Map<K, ? super List<? extends V>> parts = new TreeMap<>();

    static { System.loadLibrary("stock"); }

    public Inventory(@Deprecated int start, String... names) throws IllegalStateException {
        this.size = start < 0 ? 0 : start;
        for (String name : names) {
            if (name == null) continue; // skip it
            else size += name.length();
        }
    }

    @Override
    public <R> Map<R, List<V>> regroup(Function<? super V, ? extends R> key) {
        List<V>[] all = new List[size];
        int[][] grid = new int[3][];
        outer:
        for (int i = 0, j = 10; i < j; i++, --j) {
            while (true) { if (i % 2 == 0) break outer; }
        }
        return parts.values().stream().flatMap(List::stream).collect(groupingBy(key, LinkedHashMap::new, toList()));
    }

    synchronized void drain() {
        do { size--; } while (size > 0);
        assert size == 0 : "left: " + size;
    }
}
