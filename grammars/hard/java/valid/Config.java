import java.lang.annotation.*;

@Retention(RetentionPolicy.RUNTIME)
@Target(value = {ElementType.TYPE, ElementType.METHOD})
@interface Route {
    String path() default "/";
    String[] methods() default {"GET", "HEAD"};
    int priority() default 1 + 2;
    Class<?> handler() default Object.class;
    int LIMIT = 10;
}

@Route(path = "/status", methods = {}, priority = -3)
enum Level implements Supplier<String> {
    DEBUG(10) { @Override String label() { return "debug"; } },
    @Deprecated INFO(20),
    ERROR(40.5e-1),
    ;

    private final double weight;

    Level(double weight) { this.weight = weight; }

    String label() { return name().toLowerCase(); }

    public String get() {
        return """
            {
              "level": "%s",
              "quote": \"""triple\""", ""
              "größe": %d \
            }
            """.formatted(label(), 0xFF_FFL, 1_000, 0x1.8p3, 3d, 12.f);
    }
}
