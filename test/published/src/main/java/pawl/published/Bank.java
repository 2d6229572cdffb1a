package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The bank's side of pawl: registrations, with the credential of an administrator. */
final class Bank {

    private final String url;
    private final String authorization;

    /** `credential`: `user:password`. */
    Bank(String url, String credential) {
        this.url = url;
        this.authorization = "Basic " + Base64.getEncoder().encodeToString(credential.getBytes(StandardCharsets.UTF_8));
    }

    /** What an app is built with: `appKey`, `appSecret`, `masterServerPublicKey` and, for 4.0, `mobileSdkConfig`. */
    JsonNode application(String id) throws Exception {
        return call("GET", "/admin/applications/" + encode(id), null).path("responseObject");
    }

    /** Registers a user; gives the activation code. */
    String register(String userId) throws Exception {
        String qr = call("POST", "/registration", Map.of("userId", userId)).path("activationQrCodeData").asText();
        return qr.substring(0, qr.indexOf('#'));
    }

    void commit(String userId) throws Exception {
        call("POST", "/registration/commit", Map.of("userId", userId));
    }

    /** Phones of the application may move to the other one, and nowhere else. */
    void allowMove(String application, String to) throws Exception {
        Object transfers = List.of(Map.of("targets", List.of(to), "type", "MOVE"));
        call("PATCH", "/admin/applications/" + encode(application), Map.of("transfers", transfers));
    }

    /** Registers a phone beside those that the user has; gives `registrationId` and `activationQrCodeData`. */
    JsonNode registerFurther(String userId) throws Exception {
        return call("POST", "/v2/registrations", Map.of("userId", userId));
    }

    void commitFurther(String registrationId) throws Exception {
        call("POST", "/v2/registrations/" + registrationId + "/commit", Map.of());
    }

    /** `change`: as of `change`. */
    void changeFurther(String registrationId, String change) throws Exception {
        call("PUT", "/v2/registrations/" + registrationId, Map.of("change", change));
    }

    void deleteFurther(String registrationId) throws Exception {
        call("DELETE", "/v2/registrations/" + registrationId, null);
    }

    String stateOf(String registrationId) throws Exception {
        return call("GET", "/v2/registrations/" + registrationId, null).path("state").asText();
    }

    int countPhones(String userId) throws Exception {
        return call("GET", "/v2/registrations?userId=" + encode(userId), null).path("registrations").size();
    }

    /** From the template `login`; `registrationId`: of the one phone that is shown it, null where all of the user's are. Gives the id. */
    String createOperation(String userId, String registrationId) throws Exception {
        Map<String, String> operation = new TreeMap<>(Map.of("userId", userId, "template", "login"));
        if (registrationId != null) {
            operation.put("registrationId", registrationId);
        }
        return call("POST", "/v2/operations", operation).path("operationId").asText();
    }

    JsonNode operation(String operationId) throws Exception {
        return call("GET", "/v2/operations/" + operationId, null);
    }

    /** What the audit log has of the user, the newest first. */
    JsonNode audit(String userId) throws Exception {
        return call("GET", "/audit/log?limit=1000&userId=" + encode(userId), null).path("items");
    }

    /** `change`: BLOCK, UNBLOCK or REMOVE. */
    void change(String userId, String change) throws Exception {
        call("PUT", "/registration", Map.of("userId", userId, "change", change));
    }

    String state(String userId) throws Exception {
        return call("GET", "/registration?userId=" + encode(userId), null).path("registration").asText();
    }

    /** A challenge over free data in the lines of an operation. */
    JsonNode challenge(String userId, String id, String data) throws Exception {
        Map<String, String> challenge = challengeOver(id, data);
        challenge.put("userId", userId);
        return call("POST", "/offline/challenges", challenge);
    }

    /** The same for any phone of the application. */
    JsonNode challengeForAny(String id, String data) throws Exception {
        return call("POST", "/offline/challenges", challengeOver(id, data));
    }

    private static Map<String, String> challengeOver(String id, String data) {
        String lines = String.join("\n", id, "Dovolená", "Ten euro", data, "");
        String body = Base64.getEncoder().encodeToString((id + "&" + data).getBytes(StandardCharsets.UTF_8));
        return new TreeMap<>(Map.of("data", lines, "resourceId", "/operation/authorize/offline", "body", body));
    }

    /** The verdict on what was typed for such a challenge. */
    JsonNode verifyOfflineOf(String activationId, JsonNode challenge, String otp) throws Exception {
        return call("POST", "/offline/verification",
                Map.of("challengeId", challenge.path("challengeId").asText(), "activationId", activationId, "otp", otp));
    }

    /** The verdict on what a user typed. */
    JsonNode verifyOffline(JsonNode challenge, String otp) throws Exception {
        return call("POST", "/offline/verification", Map.of("challengeId", challenge.path("challengeId").asText(), "otp", otp));
    }

    private JsonNode call(String method, String path, Object body) throws Exception {
        Map<String, String> headers = Map.of("Authorization", authorization);
        return new Http.Request(method, url + path, headers, body == null ? null : Http.bytes(body), null).exchange();
    }

    private static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }
}
