package pawl.published;

import java.util.List;
import java.util.Map;

/** Requests that the library of 3.x sends over its own HTTP layer, as it is published: nothing of this driver is between it and the bank. */
final class LibraryChecks {

    interface Shop {
        Phone3 sell() throws Exception;
    }

    /** The library encodes what stands in a URL once more, after it signed it. */
    private static final List<String> QUERIES = List.of("", "?from=2026-01-01&to=2026-11-28", "?b=2&a=1&a=0", "?a=&b=1",
            "?text=%C5%BElu%C5%A5%20k%C5%AF%C5%88", "?x=a%26b%3Dc&y=1", "?plus=a+b", "?rate=100%25&x=%2525", "?star=*~-._%21%27%28%29");

    private final Check check;
    private final String name;
    private final Shop shop;
    private final Bank pawl;
    private final String bank;

    LibraryChecks(Check check, String name, Shop shop, Bank pawl, String bank) {
        this.check = check;
        this.name = name;
        this.shop = shop;
        this.pawl = pawl;
        this.bank = bank;
    }

    void run() {
        check.run(name + " sent by the library itself", () -> {
            Phone3 phone = shop.sell();
            String userId = "published-library-" + name;
            phone.activate(pawl.register(userId));
            pawl.commit(userId);
            check.run(name + " library: signed POST /login", () -> good(phone.sendSigned("POST", bank + "/login", "/login",
                    Http.bytes(Map.of("device", "můj telefon")))));
            for (String query : QUERIES) {
                check.run(name + " library: signed GET " + query, () ->
                        good(phone.sendSigned("GET", bank + "/payments" + query, "/payments", null)));
            }
            check.run(name + " library: token GET /accounts", () -> good(phone.sendToken(bank + "/accounts")));
            check.run(name + " library: encrypted POST /statement", () ->
                    good(phone.sendEncrypted(bank + "/statement", Http.bytes(Map.of("month", "2026-11")))));
            check.run(name + " library: signed and encrypted POST /limits", () ->
                    good(phone.sendSignedEncrypted(bank + "/limits", "/limits", Http.bytes(Map.of("daily", 90)))));
            check.run(name + " library: the phone and pawl agree on the counter", () ->
                    good(phone.sendSigned("POST", bank + "/login", "/login", Http.bytes(Map.of()))));
        });
    }

    private static void good(int status) {
        Check.equal(200, status, "the status");
    }
}
