package pawl.published;

import java.util.Objects;

/** One line a check, and how many passed and failed. */
final class Check {

    private int passed;
    private int failed;

    /** What is checked; passes when it throws nothing. */
    interface Body {
        void run() throws Exception;
    }

    void run(String name, Body body) {
        try {
            body.run();
            passed++;
            System.out.println("PASS " + name);
        } catch (Exception | AssertionError e) {
            failed++;
            String why = e instanceof AssertionError ? e.getMessage() : e.toString();
            System.out.println("FAIL " + name + ": " + why.replaceAll("\\s+", " "));
        }
    }

    /** Prints the numbers; true when nothing failed. */
    boolean end() {
        System.out.println(passed + " passed, " + failed + " failed");
        return passed > 0 && failed == 0;
    }

    static void that(boolean condition, String otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }

    static void equal(Object expected, Object actual, String what) {
        that(Objects.equals(expected, actual), what + " is " + actual + " in place of " + expected);
    }
}
