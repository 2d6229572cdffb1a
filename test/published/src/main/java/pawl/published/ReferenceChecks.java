package pawl.published;

import static pawl.published.Phone.Factors.POSSESSION_BIOMETRY;
import static pawl.published.Phone.Factors.POSSESSION_KNOWLEDGE;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import pawl.published.Http.Request;

/**
 * The published clients of the reference at pawl's back-end API: a Spring bank with the library of 1.10 and its client, and the two clients of 2.0
 * that are called by hand, as a library calls them.
 */
final class ReferenceChecks {

    private static final Pattern PAIR = Pattern.compile("(\\w+)=\"([^\"]*)\"");
    private static final byte[] LOGIN = Http.bytes(Map.of("device", "můj telefon"));
    private static final byte[] MONTH = Http.bytes(Map.of("month", "2026-11"));
    private static final String UNKNOWN = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";

    private final Check check;
    private final String name;
    private final Checks.Shop shop;
    private final String application;
    private final String spring;
    private final String clients;

    /** `spring`, `clients`: URLs of the two programs below test/published. */
    ReferenceChecks(Check check, String name, Checks.Shop shop, String application, String spring, String clients) {
        this.check = check;
        this.name = name;
        this.shop = shop;
        this.application = application;
        this.spring = spring;
        this.clients = clients;
    }

    /** A phone of 3.x at the Spring bank. */
    void runSpring() {
        group("spring", "PowerAuthRestClient", this::annotations);
        group("spring client 1.10.0", "PowerAuthRestClient", this::administration);
        check("spring encrypted in application scope, without an activation", () -> {
            JsonNode answer = shop.sell().encrypted(spring + "/questions", MONTH, true).exchange();
            Check.equal("2026-11", answer.path("opened").path("month").asText(), "what was opened");
        });
    }

    /** A phone of any version at a client of 2.0: `dialect` is v3 or v4. */
    void runClient(String dialect) {
        group("client 2.0.1 " + dialect, dialect, (phone, own) -> {
            verification(phone, own, dialect);
            administration(phone, own);
        });
    }

    private interface Group {
        void run(Phone phone, Own own) throws Exception;
    }

    /** An activation that a client has made. */
    private final class Own {
        private final String client;
        private final String what;
        private final String userId;
        private final String id;
        private final String code;

        private Own(String client, String what) throws Exception {
            this.client = client;
            this.what = what;
            userId = "reference-" + name + "-" + client + "-" + System.nanoTime();
            JsonNode made = call("initActivation", Map.of("userId", userId, "applicationId", application));
            id = made.path("activationId").asText();
            code = made.path("activationCode").asText();
        }

        private void check(String that, Check.Body body) {
            ReferenceChecks.this.check(what + ": " + that, body);
        }

        private JsonNode call(String method, Map<String, ?> request) throws Exception {
            return send(client, method, request).expect(200).json();
        }

        private JsonNode ofId(String method, Object... more) throws Exception {
            return call(method, withId(more));
        }

        private Map<String, Object> withId(Object... more) {
            Map<String, Object> request = new HashMap<>(Map.of("activationId", id));
            for (int i = 0; i < more.length; i += 2) {
                request.put((String) more[i], more[i + 1]);
            }
            return request;
        }

        private String state() throws Exception {
            return ofId("getActivationStatus").path("activationStatus").asText();
        }

        private void refused(String code, String method, Map<String, ?> request) throws Exception {
            Check.equal(code, send(client, method, request).expect(400).json().path("code").asText(), "the error");
        }
    }

    private Http.Reply send(String client, String method, Map<String, ?> request) throws Exception {
        String base = client.equals("PowerAuthRestClient") ? spring : clients;
        return new Request("POST", base + "/" + client + "/" + method, Map.of(), Http.bytes(request), null).send();
    }

    private void check(String what, Check.Body body) {
        check.run(name + " " + what, body);
    }

    /** An active phone whose activation the client made and committed. */
    private void group(String what, String client, Group group) {
        Phone[] phone = new Phone[1];
        Own[] own = new Own[1];
        check(what + ": activation made, bound and committed", () -> {
            own[0] = new Own(client, what);
            Check.equal("CREATED", own[0].state(), "the state");
            phone[0] = shop.sell();
            phone[0].activate(own[0].code);
            // A phone of 4.0 waits for its commit, too.
            Check.equal("PENDING_COMMIT", own[0].state(), "the state");
            Check.that(own[0].ofId("commitActivation").path("activated").asBoolean(), "not activated");
            Check.equal("ACTIVE", own[0].state(), "the state");
        });
        if (own[0] == null || phone[0] == null) {
            return;
        }
        try {
            group.run(phone[0], own[0]);
        } catch (Exception | AssertionError e) {
            check(what, () -> {
                throw e;
            });
        }
    }

    private void annotations(Phone phone, Own own) {
        own.check("@PowerAuth", () -> {
            JsonNode answer = login(phone, Phone.PIN).exchange();
            Check.equal(own.userId, answer.path("hello").asText(), "the user");
            Check.equal("POSSESSION_KNOWLEDGE", answer.path("provenBy").asText(), "what was proven");
            Check.equal(application, answer.path("application").asText(), "the application");
        });
        own.check("@PowerAuth by biometry", () -> {
            JsonNode answer = phone.signed("POST", spring + "/login", "/login", LOGIN, POSSESSION_BIOMETRY, Phone.PIN).exchange();
            Check.equal("POSSESSION_BIOMETRY", answer.path("provenBy").asText(), "what was proven");
        });
        own.check("@PowerAuth over a query", () ->
                phone.signed("GET", spring + "/payments?b=2&a=%C5%BE", "/payments", null, POSSESSION_KNOWLEDGE, Phone.PIN).exchange());
        own.check("@PowerAuth refuses a replayed and a changed request", () -> {
            Request request = login(phone, Phone.PIN);
            request.exchange();
            request.send().expect(401);
            login(phone, Phone.PIN).withBody(MONTH).send().expect(401);
            Check.equal(0, phone.failedAttempts(), "failed attempts");
        });
        own.check("@PowerAuth refuses a wrong PIN, which counts, and the right one resets it", () -> {
            login(phone, Phone.WRONG_PIN).send().expect(401);
            Check.equal(1, own.ofId("getActivationStatus").path("failedAttempts").asInt(), "failed attempts");
            login(phone, Phone.PIN).exchange();
            Check.equal(0, own.ofId("getActivationStatus").path("failedAttempts").asInt(), "failed attempts");
        });
        own.check("@PowerAuthToken, once", () -> {
            Request request = phone.withToken(spring + "/accounts");
            Check.equal(own.userId, request.exchange().path("hello").asText(), "the user");
            request.send().expect(401);
        });
        own.check("@PowerAuthEncryption in activation scope", () -> {
            Request request = phone.encrypted(spring + "/statement", MONTH, false);
            Check.equal("2026-11", request.exchange().path("opened").path("month").asText(), "what was opened");
            request.send().expect(phone.hasReplayProtection() ? 400 : 200);
        });
        own.check("@PowerAuthEncryption refuses a broken envelope", () -> {
            Request request = phone.encrypted(spring + "/statement", MONTH, false);
            ObjectNode envelope = (ObjectNode) Http.JSON.readTree(request.body());
            String data = envelope.path("encryptedData").asText();
            envelope.put("encryptedData", (data.startsWith("A") ? "B" : "A") + data.substring(1));
            request.withBody(Http.bytes(envelope)).send().expect(400);
        });
        own.check("@PowerAuth with @PowerAuthEncryption", () -> {
            JsonNode answer = phone.signedEncrypted(spring + "/limits", "/limits", Http.bytes(Map.of("daily", 50)), Phone.PIN).exchange();
            Check.equal(50, answer.path("opened").path("daily").asInt(), "the limit");
        });
        own.check("a blocked phone is refused everywhere", () -> {
            Request read = phone.withToken(spring + "/accounts");
            Request statement = phone.encrypted(spring + "/statement", MONTH, false);
            own.ofId("blockActivation", "reason", "LOST");
            login(phone, Phone.PIN).send().expect(401);
            read.send().expect(401);
            statement.send().expect(400);
            own.ofId("unblockActivation");
            login(phone, Phone.PIN).exchange();
        });
    }

    private Request login(Phone phone, String pin) throws Exception {
        return phone.signed("POST", spring + "/login", "/login", LOGIN, POSSESSION_KNOWLEDGE, pin);
    }

    /** What a library does with a request, and then asks. */
    private void verification(Phone phone, Own own, String dialect) {
        boolean isV4 = dialect.equals("v4");
        String method = isV4 ? "verifyAuthentication" : "verifySignature";
        String valid = isV4 ? "authenticationValid" : "signatureValid";
        own.check(method + ", once", () -> {
            Map<String, Object> asked = codeOf(phone.signed("POST", spring + "/login", "/login", LOGIN, POSSESSION_KNOWLEDGE, Phone.PIN), isV4);
            JsonNode answer = own.call(method, asked);
            Check.that(answer.path(valid).asBoolean(), "not valid: " + answer);
            Check.equal(own.userId, answer.path("userId").asText(), "the user");
            Check.equal("ACTIVE", answer.path("activationStatus").asText(), "the state");
            Check.that(!own.call(method, asked).path(valid).asBoolean(), "valid twice");
        });
        own.check(method + " of a wrong PIN and of an unknown activation", () -> {
            Map<String, Object> wrong = codeOf(phone.signed("POST", spring + "/login", "/login", LOGIN, POSSESSION_KNOWLEDGE, Phone.WRONG_PIN), isV4);
            JsonNode answer = own.call(method, wrong);
            Check.that(!answer.path(valid).asBoolean(), "valid");
            Check.equal(4, answer.path("remainingAttempts").asInt(), "remaining attempts");
            Map<String, Object> right = codeOf(phone.signed("POST", spring + "/login", "/login", LOGIN, POSSESSION_KNOWLEDGE, Phone.PIN), isV4);
            Map<String, Object> unknown = new HashMap<>(right);
            unknown.put("activationId", UNKNOWN);
            Check.equal("REMOVED", own.call(method, unknown).path("activationStatus").asText(), "the state of none");
            Check.that(own.call(method, right).path(valid).asBoolean(), "not valid after that");
        });
        own.check("validateToken, once", () -> {
            Map<String, String> pairs = pairsOf(phone.withToken(spring + "/accounts").headers().get("X-PowerAuth-Token"));
            Map<String, Object> asked = Map.of("tokenId", pairs.get("token_id"), "tokenDigest", pairs.get("token_digest"), "nonce",
                    pairs.get("nonce"), "timestamp", Long.parseLong(pairs.get("timestamp")), "protocolVersion", pairs.get("version"));
            JsonNode answer = own.call("validateToken", asked);
            Check.that(answer.path("tokenValid").asBoolean(), "not valid: " + answer);
            Check.equal("POSSESSION", answer.path(isV4 ? "authenticationCodeType" : "signatureType").asText(), "factors");
            Check.that(!own.call("validateToken", asked).path("tokenValid").asBoolean(), "valid twice");
        });
    }

    /** The base string of the published library: PowerAuthHttpBody. */
    private static Map<String, Object> codeOf(Request request, boolean isV4) {
        Map<String, String> pairs = pairsOf(request.headers().get("X-PowerAuth-Authorization"));
        Base64.Encoder base64 = Base64.getEncoder();
        String data = String.join("&", request.method(), base64.encodeToString("/login".getBytes(StandardCharsets.UTF_8)),
                pairs.get("pa_nonce"), base64.encodeToString(request.body()));
        String code = pairs.getOrDefault("pa_signature", pairs.get("pa_auth_code"));
        String factors = pairs.getOrDefault("pa_signature_type", pairs.get("pa_auth_code_type")).toUpperCase();
        Map<String, Object> asked = new HashMap<>(Map.of("activationId", pairs.get("pa_activation_id"), "applicationKey",
                pairs.get("pa_application_key"), "data", data));
        asked.put(isV4 ? "authenticationCode" : "signature", code);
        asked.put(isV4 ? "authenticationCodeType" : "signatureType", factors);
        asked.put(isV4 ? "authenticationVersion" : "signatureVersion", pairs.get("pa_version"));
        return asked;
    }

    private static Map<String, String> pairsOf(String header) {
        Map<String, String> pairs = new HashMap<>();
        Matcher matcher = PAIR.matcher(header);
        while (matcher.find()) {
            pairs.put(matcher.group(1), matcher.group(2));
        }
        return pairs;
    }

    private void administration(Phone phone, Own own) {
        own.check("getSystemStatus", () ->
                Check.equal("OK", own.call("getSystemStatus", Map.of()).path("status").asText(), "the status"));
        own.check("getActivationStatus", () -> {
            JsonNode status = own.ofId("getActivationStatus");
            Check.equal(own.userId, status.path("userId").asText(), "the user");
            Check.equal(application, status.path("applicationId").asText(), "the application");
            Check.that(status.path("timestampCreated").asLong() > 1_700_000_000_000L, "created at " + status.path("timestampCreated"));
        });
        own.check("getActivationListForUser and lookupActivations", () -> {
            JsonNode list = own.call("getActivationListForUser", Map.of("userId", own.userId, "applicationId", application));
            Check.equal(own.id, list.path("activations").path(0).path("activationId").asText(), "the activation");
            JsonNode found = own.call("lookupActivations", Map.of("userIds", List.of(own.userId), "activationStatus", "ACTIVE",
                    "timestampLastUsedAfter", 1_600_000_000_000L));
            Check.equal(own.id, found.path("activations").path(0).path("activationId").asText(), "the activation");
        });
        own.check("flags", () -> {
            own.ofId("addActivationFlags", "activationFlags", List.of("A", "B"));
            own.ofId("removeActivationFlags", "activationFlags", List.of("A"));
            Check.equal("[\"B\"]", own.ofId("listActivationFlags").path("activationFlags").toString(), "flags");
            own.ofId("updateActivationFlags", "activationFlags", List.of("C"));
            Check.equal("[\"C\"]", own.ofId("getActivationStatus").path("activationFlags").toString(), "flags");
        });
        own.check("updateActivationName", () -> {
            own.ofId("updateActivationName", "activationName", "Můj telefon");
            Check.equal("Můj telefon", own.ofId("getActivationStatus").path("activationName").asText(), "the name");
        });
        own.check("blockActivation, unblockActivation", () -> {
            JsonNode blocked = own.ofId("blockActivation", "reason", "LOST", "externalUserId", "clerk");
            Check.equal("BLOCKED", blocked.path("activationStatus").asText(), "the state");
            Check.equal("LOST", blocked.path("blockedReason").asText(), "the reason");
            Check.equal("ACTIVE", own.ofId("unblockActivation").path("activationStatus").asText(), "the state");
            own.call("updateStatusForActivations", Map.of("activationIds", List.of(own.id), "activationStatus", "BLOCKED"));
            Check.equal("BLOCKED", own.state(), "the state");
            own.ofId("unblockActivation");
        });
        own.check("errors have their codes", () -> {
            own.refused("ERR0009", "blockActivation", Map.of("activationId", UNKNOWN));
            own.refused("ERR0008", "commitActivation", own.withId());
            own.refused("ERR0015", "getApplicationDetail", Map.of("applicationId", "nobody"));
            own.refused("ERR0040", "initActivation", Map.of("userId", own.userId, "applicationId", application));
            own.refused("ERR0034", "operationDetail", Map.of("operationId", UNKNOWN));
        });
        own.check("getApplicationDetail, lookupApplicationByAppKey", () -> {
            JsonNode detail = own.call("getApplicationDetail", Map.of("applicationId", application));
            String key = detail.path("versions").path(0).path("applicationKey").asText();
            JsonNode found = own.call("lookupApplicationByAppKey", Map.of("applicationKey", key));
            Check.equal(application, found.path("applicationId").asText(), "the application");
        });
        own.check("operations", () -> {
            JsonNode created = own.call("createOperation", Map.of("userId", own.userId, "applications", List.of(application), "templateName",
                    "payment", "externalId", "order-7", "parameters", Map.of("amount", "10", "currency", "EUR", "iban", "DE89370400440532013000")));
            Check.equal("PENDING", created.path("status").asText(), "the status");
            Map<String, Object> ofId = Map.of("operationId", created.path("id").asText());
            Check.equal("order-7", own.call("operationDetail", ofId).path("externalId").asText(), "the external id");
            Map<String, Object> ofUser = Map.of("userId", own.userId, "applications", List.of(application));
            Check.equal(1, own.call("operationPendingList", ofUser).size(), "operations that wait");
            Check.equal("CANCELED", own.call("operationCancel", ofId).path("status").asText(), "the status");
            Check.equal(0, own.call("operationPendingList", ofUser).size(), "operations that wait");
            Check.equal(1, own.call("operationList", ofUser).size(), "operations");
        });
        boolean isV4 = own.client.equals("v4");
        own.check("texts and codes without connection", () -> {
            JsonNode text = own.ofId(isV4 ? "createPersonalizedOfflineAuthPayload" : "createPersonalizedOfflineSignaturePayload", "data", "pay");
            String nonce = text.path("nonce").asText();
            Check.that(text.path("offlineData").asText().startsWith("pay\n" + nonce + "\n"), "the text is " + text);
            JsonNode general = own.call(isV4 ? "createNonPersonalizedOfflineAuthPayload" : "createNonPersonalizedOfflineSignaturePayload",
                    Map.of("applicationId", application, "data", "pay"));
            Check.that(general.path("offlineData").asText().contains(general.path("nonce").asText() + "\n0"), "the text is " + general);
            JsonNode verdict = own.ofId(isV4 ? "verifyOfflineAuthentication" : "verifyOfflineSignature", "data", "POST&L3BheQ==&" + nonce + "&cGF5",
                    isV4 ? "authenticationCode" : "signature", "00000000-00000000", "allowBiometry", true);
            Check.that(!verdict.path(isV4 ? "authenticationValid" : "signatureValid").asBoolean(), "valid");
            Check.equal(own.userId, verdict.path("userId").asText(), "the user");
        });
        own.check("a signature that no device key made", () -> {
            JsonNode plain = own.ofId(isV4 ? "verifyAsymmetricSignature" : "verifyECDSASignature", "data", "cGF5", "signature", "MAYCAQECAQE=");
            Check.that(!plain.path("signatureValid").asBoolean(true), "valid");
            if (isV4) {
                Check.that(!own.ofId("verifyJwtSignature", "signedData", "e30.e30.e30").path("signatureValid").asBoolean(true), "valid");
            }
        });
        own.check("getActivationHistory", () -> Check.that(own.ofId("getActivationHistory").path("items").size() > 4, "too few items"));
        own.check("removeActivation", () -> {
            Check.that(own.ofId("removeActivation").path("removed").asBoolean(), "not removed");
            Check.equal("REMOVED", own.state(), "the state");
        });
    }
}
