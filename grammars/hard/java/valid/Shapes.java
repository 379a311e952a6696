sealed interface Shape permits Circle, Square, Group {}
record Circle(double radius) implements Shape {
    Circle {
        if (radius < 0) throw new IllegalArgumentException("negative: " + radius);
    }
}
record Square(double side) implements Shape {}
abstract sealed class Round implements Shape, Cloneable permits Oval {}
non-sealed class Group implements Shape {
    final Shape[] parts;
    Group(Shape... parts) { this.parts = parts.clone(); }
}
record Pair<A, B>(A first, B second) {}

class Areas {
    static double area(Shape shape) {
        return switch (shape) {
            case Circle(double r) when r > 1e3 -> Double.POSITIVE_INFINITY;
            case Circle c -> Math.PI * c.radius() * c.radius();
            case Square(var side) -> side * side;
            case Group g -> {
                double sum = .0;
                for (final var part : g.parts) sum += area(part);
                yield sum;
            }
            case null, default -> throw new AssertionError();
        };
    }

    static String name(Object o) {
        if (o instanceof Pair<?, ?>(Circle c, Square s) && c.radius() == s.side()) return "pair";
        if (!(o instanceof String text)) { return o == null ? "null" : "other"; }
        switch (text.length()) {
            case 0: case 1:
                return "short";
            case 2:
                break;
            default:
                return text;
        }
        return "two" + 'x' + '\u0041' + "\t\101";
    }
}
