package pawl.published;

import java.util.Map;

/**
 * Requests that the library of 3.x sends over its own HTTP layer: nothing of this driver is between it and the bank. That layer encodes
 * every percent sign of a query once more, after the query was signed.
 */
final class LibraryChecks {

    interface Shop {
        Phone3 sell() throws Exception;
    }

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
            check.run(name + " library: signed GET without a query", () ->
                    good(phone.sendSigned("GET", bank + "/payments", "/payments", null)));
            for (String query : Queries.ALL) {
                // What that layer changed is not what was signed.
                int expected = query.equals(Queries.NAMELESS) ? 401 : 200;
                check.run(name + " library: signed GET " + query + " is answered with " + expected, () -> Check.equal(expected,
                        phone.sendSigned("GET", bank + "/payments" + query, "/payments", null), "the status"));
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
