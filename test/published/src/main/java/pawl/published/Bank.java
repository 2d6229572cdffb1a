package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;

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

    /** `change`: BLOCK, UNBLOCK or REMOVE. */
    void change(String userId, String change) throws Exception {
        call("PUT", "/registration", Map.of("userId", userId, "change", change));
    }

    String state(String userId) throws Exception {
        return call("GET", "/registration?userId=" + encode(userId), null).path("registration").asText();
    }

    /** A challenge over free data in the lines of an operation. */
    JsonNode challenge(String userId, String id, String data) throws Exception {
        String lines = String.join("\n", id, "Dovolená", "Ten euro", data, "");
        String body = Base64.getEncoder().encodeToString((id + "&" + data).getBytes(StandardCharsets.UTF_8));
        return call("POST", "/offline/challenges",
                Map.of("userId", userId, "data", lines, "resourceId", "/operation/authorize/offline", "body", body));
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
