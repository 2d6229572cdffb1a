package pawl.published;

import java.util.List;

/** Queries of a GET, as phones may write them. */
final class Queries {

    /** Of a part without a name the HTTP layer of the library of 3.x makes another one: what arrives is `?1&a=2`. */
    static final String NAMELESS = "?=1&a=2";

    static final List<String> ALL = List.of(
            "?from=2026-01-01&to=2026-11-28",
            "?b=2&a=1&a=0",
            "?a=&b=1",
            "?A=1&a=2&_=3",
            "?text=%C5%BElu%C5%A5%20k%C5%AF%C5%88",
            "?x=a%26b%3Dc&y=1",
            "?plus=a+b",
            "?rate=100%25&x=%2525",
            "?star=*~-._%21%27%28%29",
            "?x=%2F%3F%3A%40&y=%5B%5D",
            "?x=a%2Bb&y=a+b&z=a%20b",
            "?a==1&b=c=d",
            "?a=1&&b=2&",
            "?flag&a=1",
            "?flag",
            NAMELESS,
            "?same=1&same=1&same=0",
            "?%F0%9F%98%80=1&%EF%BF%BD=2&a=%F0%9F%98%80",
            "?bad=%FF%C3%28&x=1",
            "?zero=%00&x=1",
            "?lower=%c5%be&unreserved=%41%7E%2D",
            "?semi=1;2&a=1,2&quote='");

    private Queries() {
    }
}
