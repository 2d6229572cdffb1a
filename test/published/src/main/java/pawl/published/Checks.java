package pawl.published;

import static pawl.published.Phone.Factors.POSSESSION;
import static pawl.published.Phone.Factors.POSSESSION_BIOMETRY;
import static pawl.published.Phone.Factors.POSSESSION_KNOWLEDGE;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import pawl.published.Http.Request;

/** What a phone does at the example bank. The same for all versions; each group has a phone of its own. */
final class Checks {

    /** Makes a phone that has no activation yet. */
    interface Shop {
        Phone sell() throws Exception;
    }

    private static final String AUTHORIZATION = "X-PowerAuth-Authorization";
    /** So many counter values are tried. */
    private static final int LOOK_AHEAD = 20;
    private static final byte[] LOGIN = Http.bytes(Map.of("device", "můj telefon"));
    private static final byte[] TRANSFER = Http.bytes(Map.of("to", "Bob", "amount", 1));
    private static final byte[] MONTH = Http.bytes(Map.of("month", "2026-11"));
    private static final String ACCOUNT = "/accounts/DE89370400440532013000";

    private final Check check;
    private final String name;
    private final Shop shop;
    private final Bank pawl;
    private final String bank;
    private final String otherBank;
    private int users;

    /** `name`: of the version; `bank`: URL of the example; `otherBank`: URL of the one of scripts/ci/published.ts. */
    Checks(Check check, String name, Shop shop, Bank pawl, String bank, String otherBank) {
        this.check = check;
        this.name = name;
        this.shop = shop;
        this.pawl = pawl;
        this.bank = bank;
        this.otherBank = otherBank;
    }

    void run() {
        group("signed", this::signed);
        group("queries", this::queries);
        group("altered", this::altered);
        group("token", this::token);
        group("encrypted", this::encrypted);
        group("signed and encrypted", this::signedEncrypted);
        group("dialect", this::dialect);
        group("offline", this::offline);
        group("foreign", this::foreign);
        group("PIN", this::pin);
        group("blocked", this::blocked);
        check("encrypted in application scope, without an activation", this::applicationScope);
    }

    private interface Group {
        void run(Phone phone, String userId) throws Exception;
    }

    /** A phone of a new user, and what it does. Whatever is thrown beside the checks is a failed check itself. */
    private void group(String what, Group group) {
        String userId = "published-" + name + "-" + ++users;
        Phone[] active = new Phone[1];
        check(what + ": activation", () -> {
            Phone phone = shop.sell();
            phone.activate(pawl.register(userId));
            pawl.commit(userId);
            active[0] = phone;
        });
        if (active[0] == null) {
            return;
        }
        try {
            group.run(active[0], userId);
        } catch (Exception | AssertionError e) {
            check(what, () -> {
                throw e;
            });
        }
    }

    void check(String what, Check.Body body) {
        check.run(name + " " + what, body);
    }

    private void signed(Phone phone, String userId) {
        check("signed POST /login", () -> {
            JsonNode answer = login(phone, Phone.PIN).exchange();
            Check.equal(userId, answer.path("hello").asText(), "the user");
            Check.equal("[\"POSSESSION_KNOWLEDGE\"]", answer.path("provenBy").toString(), "what was proven");
        });
        check("signed POST /login by biometry", () -> {
            JsonNode answer = phone.signed("POST", bank + "/login", "/login", LOGIN, POSSESSION_BIOMETRY, Phone.PIN).exchange();
            Check.equal("[\"POSSESSION_BIOMETRY\"]", answer.path("provenBy").toString(), "what was proven");
        });
        check("POST /login signed by possession alone is refused and not counted", () -> {
            phone.signed("POST", bank + "/login", "/login", LOGIN, POSSESSION, Phone.PIN).send().expect(401);
            Check.equal(0, phone.failedAttempts(), "failed attempts");
        });
        check("signed POST without a body", () ->
                phone.signed("POST", bank + "/login", "/login", null, POSSESSION_KNOWLEDGE, Phone.PIN).exchange());
        check("signed POST with the account in the resource id", () -> {
            JsonNode answer = transfer(phone, ACCOUNT, ACCOUNT, TRANSFER).exchange();
            Check.that(answer.path("done").asBoolean(), "not done: " + answer);
        });
        check("a resource id of a path that is percent-encoded", () ->
                transfer(phone, "/accounts/%C3%9Aspory%20a", "/accounts/Úspory a", TRANSFER).exchange());
        check("a slash within a parameter of the path is refused: it would make the resource id of another route", () ->
                transfer(phone, "/accounts/a%2Fb", "/accounts/a/b", TRANSFER).send().expect(401));
        check("signed PUT", () -> {
            byte[] body = Http.bytes(Map.of("name", "Dovolená"));
            JsonNode answer = phone.signed("PUT", bank + ACCOUNT + "/name", ACCOUNT + "/name", body, POSSESSION_KNOWLEDGE,
                    Phone.PIN).exchange();
            Check.equal("Dovolená", answer.path("name").asText(), "the name");
        });
        check("signed DELETE without a body", () -> {
            JsonNode answer = delete(phone, "/payees/17", "").exchange();
            Check.equal("17", answer.path("removed").asText(), "the payee");
        });
        check("signed DELETE with a query", () -> delete(phone, "/payees/17", "?why=moved&to=18").exchange());
        check("signed POST with a query beside the body", () ->
                phone.signed("POST", bank + "/login?b=2&a=1", "/login", LOGIN, POSSESSION_KNOWLEDGE, Phone.PIN).exchange());
        check("signed POST with a query and no body", () ->
                phone.signed("POST", bank + "/login?b=2&a=1", "/login", null, POSSESSION_KNOWLEDGE, Phone.PIN).exchange());
        check("signed POST of 100 kB", () -> {
            byte[] body = Http.bytes(Map.of("note", "ž".repeat(50_000)));
            phone.signed("POST", bank + "/login", "/login", body, POSSESSION_KNOWLEDGE, Phone.PIN).exchange();
        });
    }

    private void queries(Phone phone, String userId) {
        check("signed GET without a query", () -> payments(phone, "").exchange());
        check("what the bank reads of a query", () -> {
            JsonNode asked = payments(phone, "?text=%C5%BElu%C5%A5%20k%C5%AF%C5%88&x=a%26b%3Dc&a=1&a=0").exchange().path("asked");
            Check.equal("žluť kůň", asked.path("text").asText(), "text");
            Check.equal("a&b=c", asked.path("x").asText(), "x");
            Check.equal("[\"1\",\"0\"]", asked.path("a").toString(), "a");
        });
        for (String query : Queries.ALL) {
            check("signed GET " + query, () -> payments(phone, query).exchange());
        }
        check("signed GET with a query in another order on the way", () -> {
            Request request = payments(phone, "?a=1&b=2");
            request.withUrl(bank + "/payments?b=2&a=1").exchange();
        });
        check("signed GET whose query was encoded once more on the way: the bank reads what was encoded", () -> {
            JsonNode answer = payments(phone, "?x=a%26b").withUrl(bank + "/payments?x=a%2526b").exchange();
            Check.equal("a%26b", answer.path("asked").path("x").asText(), "what the bank read");
        });
        check("a part of the query without an equals sign is not covered: whoever is on the way may add one", () -> {
            JsonNode asked = payments(phone, "?a=1").withUrl(bank + "/payments?a=1&flag").exchange().path("asked");
            Check.equal("{\"a\":\"1\",\"flag\":\"\"}", asked.toString(), "what the bank read");
            payments(phone, "?a=1").withUrl(bank + "/payments?a=1&flag=").send().expect(401);
        });
        if (phone.coversBodyOfGet()) {
            check("a signed GET with a body, whose code covers no query, is not served", () ->
                    phone.signed("GET", bank + "/payments?a=1", "/payments", LOGIN, POSSESSION_KNOWLEDGE, Phone.PIN).send().expect(401));
        }
        check("a query that was changed on the way is refused", () -> {
            Request request = payments(phone, "?a=1&b=2");
            request.withUrl(bank + "/payments?a=1%26b=2").send().expect(401);
            payments(phone, "?amount=1").withUrl(bank + "/payments?amount=9").send().expect(401);
        });
    }

    private void altered(Phone phone, String userId) {
        check("a replayed request is refused and not counted", () -> {
            Request request = login(phone, Phone.PIN);
            request.exchange();
            request.send().expect(401);
            Check.equal(0, phone.failedAttempts(), "failed attempts");
        });
        check("a request that another overtook is refused", () -> {
            Request older = login(phone, Phone.PIN);
            login(phone, Phone.PIN).exchange();
            older.send().expect(401);
        });
        check("of ten copies at once one passes, and nothing counts", () -> {
            Request request = login(phone, Phone.PIN);
            List<CompletableFuture<Integer>> copies = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                copies.add(CompletableFuture.supplyAsync(() -> Http.statusOf(request)));
            }
            List<Integer> statuses = copies.stream().map(CompletableFuture::join).sorted().toList();
            Check.equal(List.of(200, 401, 401, 401, 401, 401, 401, 401, 401, 401), statuses, "what they got");
            Check.equal(0, phone.failedAttempts(), "failed attempts");
        });
        check("another account, body or method is refused", () -> {
            transfer(phone, "/accounts/DE02", "/accounts/DE01", TRANSFER).send().expect(401);
            byte[] more = Http.bytes(Map.of("to", "Bob", "amount", 9));
            transfer(phone, ACCOUNT, ACCOUNT, TRANSFER).withBody(more).send().expect(401);
            Request put = phone.signed("PUT", bank + "/login", "/login", LOGIN, POSSESSION_KNOWLEDGE, Phone.PIN);
            put.withMethod("POST").send().expect(401);
        });
        check("the phone goes on after that", () -> login(phone, Phone.PIN).exchange());
        check("after 19 requests that were lost it passes, after 20 it does not, and nothing counts", () -> {
            lose(phone, LOOK_AHEAD - 1);
            login(phone, Phone.PIN).exchange();
            lose(phone, LOOK_AHEAD);
            login(phone, Phone.PIN).send().expect(401);
            Check.equal(0, phone.failedAttempts(), "failed attempts");
        });
        check("a request without a header is refused", () ->
                new Request("POST", bank + "/login", Map.of(), LOGIN, null).send().expect(401));
    }

    private void token(Phone phone, String userId) {
        check("token GET /accounts, and again", () -> {
            Request request = phone.withToken(bank + "/accounts");
            Check.equal(2, request.exchange().path("accounts").size(), "accounts");
            request.exchange();
        });
        check("a token with another digest is refused", () -> {
            Request one = phone.withToken(bank + "/accounts");
            String header = one.headers().get("X-PowerAuth-Token");
            String other = header.replaceFirst("token_digest=\"..", "token_digest=\"AA");
            Check.that(!other.equals(header), "the header is the same: " + header);
            one.withHeader("X-PowerAuth-Token", other).send().expect(401);
        });
        check("a token does not sign", () -> phone.withToken(bank + "/payments").send().expect(401));
    }

    private void encrypted(Phone phone, String userId) {
        Request[] sent = new Request[1];
        check("encrypted POST /statement", () -> {
            Request request = phone.encrypted(bank + "/statement", MONTH, false);
            Check.that(!new String(request.body()).contains("2026-11"), "the request is plain");
            JsonNode answer = request.exchange();
            Check.equal("2026-11", answer.path("month").asText(), "the month");
            Check.equal(2, answer.path("lines").size(), "lines");
            sent[0] = request;
        });
        check("the same envelope again is " + (phone.hasReplayProtection() ? "refused" : "opened"), () ->
                sent[0].send().expect(phone.hasReplayProtection() ? 400 : 200));
        check("a broken envelope is refused", () -> {
            Request request = phone.encrypted(bank + "/statement", MONTH, false);
            JsonNode envelope = Http.JSON.readTree(request.body());
            String data = envelope.path("encryptedData").asText();
            String broken = (data.startsWith("A") ? "B" : "A") + data.substring(1);
            request.withBody(Http.bytes(((ObjectNode) envelope).put("encryptedData", broken)))
                    .send().expect(400);
        });
        check("a plain body is refused", () ->
                phone.encrypted(bank + "/statement", MONTH, false).withBody(MONTH).send().expect(400));
    }

    /** A bank whose credential is of another application of the same server. */
    private void foreign(Phone phone, String userId) {
        check("a bank of another application does not know the phone, and nothing counts", () -> {
            Request signed = login(phone, Phone.PIN);
            signed.withUrl(otherBank + "/foreign/login").send().expect(401);
            // It was not used up there.
            signed.exchange();
            login(phone, Phone.WRONG_PIN).withUrl(otherBank + "/foreign/login").send().expect(401);
            phone.withToken(otherBank + "/foreign/accounts").send().expect(401);
            phone.encrypted(otherBank + "/foreign/statement", MONTH, false).send().expect(400);
            Check.equal(0, phone.failedAttempts(), "failed attempts");
        });
    }

    private void signedEncrypted(Phone phone, String userId) {
        Request[] sent = new Request[1];
        check("signed and encrypted POST /limits", () -> {
            sent[0] = limit(phone, 50, Phone.PIN);
            Check.equal(50, sent[0].exchange().path("daily").asInt(), "the limit");
        });
        check("and the bank holds on to it", () ->
                transfer(phone, ACCOUNT, ACCOUNT, Http.bytes(Map.of("to", "Bob", "amount", 51))).send().expect(409));
        check("the same again is refused", () -> sent[0].send().expect(phone.hasReplayProtection() ? 400 : 401));
        check("with a wrong PIN it is refused and counts", () -> {
            sent[0] = limit(phone, 60, Phone.WRONG_PIN);
            sent[0].send().expect(401);
            Check.equal(1, phone.failedAttempts(), "failed attempts");
        });
        check("its envelope stays good for the right PIN, which resets the count", () -> {
            Request right = limit(phone, 60, Phone.PIN);
            sent[0].withHeader(AUTHORIZATION, right.headers().get(AUTHORIZATION)).exchange();
            Check.equal(0, phone.failedAttempts(), "failed attempts");
        });
        check("a code over another plaintext is refused", () -> {
            Request other = limit(phone, 61, Phone.PIN);
            limit(phone, 62, Phone.PIN).withHeader(AUTHORIZATION, other.headers().get(AUTHORIZATION)).send().expect(401);
        });
    }

    private void dialect(Phone phone, String userId) {
        check("X-Svc-Authorization", () -> login(phone, Phone.PIN).inOtherDialect().exchange());
        check("X-Svc-Token", () -> phone.withToken(bank + "/accounts").inOtherDialect().exchange());
        check("X-Svc-Encryption", () -> phone.encrypted(bank + "/statement", MONTH, false).inOtherDialect().exchange());
        check("X-Svc-* of a signed and encrypted request", () -> limit(phone, 80, Phone.PIN).inOtherDialect().exchange());
        check("two dialects that say different things are refused", () -> {
            Request first = login(phone, Phone.PIN);
            Request second = login(phone, Phone.PIN).inOtherDialect();
            second.withHeader(AUTHORIZATION, first.headers().get(AUTHORIZATION)).send().expect(401);
        });
    }

    private void offline(Phone phone, String userId) {
        check("a text of free data, and what the user types for it, once", () -> {
            JsonNode challenge = pawl.challenge(userId, "order-7", "A1*A10EUR");
            String code = phone.offlineCode(challenge.path("qrCodeData").asText());
            JsonNode verdict = pawl.verifyOffline(challenge, code);
            Check.that(verdict.path("isValid").asBoolean(), "the verdict is " + verdict);
            Check.equal(userId, verdict.path("userId").asText(), "the user");
            Check.equal("CHALLENGE", pawl.verifyOffline(challenge, code).path("reason").asText(), "the same again");
            JsonNode other = pawl.challenge(userId, "order-8", "A1*A10EUR");
            Check.equal("CODE_WRONG", pawl.verifyOffline(other, code).path("reason").asText(), "for another challenge");
            Check.equal(0, phone.failedAttempts(), "failed attempts");
        });
    }

    private void pin(Phone phone, String userId) {
        check("a wrong PIN is refused and counts in pawl", () -> {
            login(phone, Phone.WRONG_PIN).send().expect(401);
            Check.equal(1, phone.failedAttempts(), "failed attempts");
        });
        check("the right PIN resets the count", () -> {
            login(phone, Phone.PIN).exchange();
            Check.equal(0, phone.failedAttempts(), "failed attempts");
        });
        check("five wrong PINs block the phone", () -> {
            for (int failed = 1; failed <= 5; failed++) {
                Check.equal("ACTIVE", pawl.state(userId), "the state before failure " + failed);
                login(phone, Phone.WRONG_PIN).send().expect(401);
            }
            Check.equal("BLOCKED", pawl.state(userId), "the state");
            login(phone, Phone.PIN).send().expect(401);
        });
    }

    private void blocked(Phone phone, String userId) {
        check("a phone that the bank blocked is refused", () -> {
            Request read = phone.withToken(bank + "/accounts");
            Request statement = phone.encrypted(bank + "/statement", MONTH, false);
            read.exchange();
            pawl.change(userId, "BLOCK");
            login(phone, Phone.PIN).send().expect(401);
            read.send().expect(401);
            statement.send().expect(400);
        });
        check("after UNBLOCK it passes", () -> {
            pawl.change(userId, "UNBLOCK");
            login(phone, Phone.PIN).exchange();
        });
        check("a phone whose registration was removed is refused", () -> {
            Request read = phone.withToken(bank + "/accounts");
            Request statement = phone.encrypted(bank + "/statement", MONTH, false);
            pawl.change(userId, "REMOVE");
            login(phone, Phone.PIN).send().expect(401);
            read.send().expect(401);
            statement.send().expect(400);
        });
    }

    private void applicationScope() throws Exception {
        byte[] question = Http.bytes(Map.of("question", "Máte hypotéky?"));
        JsonNode answer = shop.sell().encrypted(otherBank + "/questions", question, true).exchange();
        Check.equal("Máte hypotéky?", answer.path("asked").asText(), "the question");
        Check.that(!answer.path("by").isTextual(), "somebody asked: " + answer);
        // The right is of the credential, so the bank is at fault, and the phone may try again.
        shop.sell().encrypted(otherBank + "/without-right", question, true).send().expect(503);
    }

    /** Signs requests that are not sent. */
    private void lose(Phone phone, int requests) throws Exception {
        for (int i = 0; i < requests; i++) {
            login(phone, Phone.PIN);
        }
    }

    private Request login(Phone phone, String pin) throws Exception {
        return phone.signed("POST", bank + "/login", "/login", LOGIN, POSSESSION_KNOWLEDGE, pin);
    }

    private Request payments(Phone phone, String query) throws Exception {
        return phone.signed("GET", bank + "/payments" + query, "/payments", null, POSSESSION_KNOWLEDGE, Phone.PIN);
    }

    private Request delete(Phone phone, String path, String query) throws Exception {
        return phone.signed("DELETE", bank + path + query, path, null, POSSESSION_KNOWLEDGE, Phone.PIN);
    }

    private Request limit(Phone phone, int daily, String pin) throws Exception {
        return phone.signedEncrypted(bank + "/limits", "/limits", Http.bytes(Map.of("daily", daily)), pin);
    }

    private Request transfer(Phone phone, String path, String signedPath, byte[] body) throws Exception {
        return phone.signed("POST", bank + path + "/transfers", signedPath + "/transfers", body, POSSESSION_KNOWLEDGE, Phone.PIN);
    }
}
