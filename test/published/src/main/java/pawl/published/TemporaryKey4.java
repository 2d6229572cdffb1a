package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.wultra.security.powerauth.crypto.lib.util.HMACHashUtilities;
import com.wultra.security.powerauth.crypto.lib.v4.kdf.KeyFactory;
import com.wultra.security.powerauth.crypto.lib.v4.model.context.SharedSecretAlgorithm;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Base64;
import java.util.Map;
import java.util.UUID;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;

/** A temporary key of pawl for one phone, or for none. `secret`: 32 bytes. */
record TemporaryKey4(String id, byte[] secret) {

    private static final int SECONDS = 300;

    /** The last three are null in application scope. */
    static TemporaryKey4 fetch(String pawl, AppKeys app, SharedSecretAlgorithm algorithm, String activationId,
            SecretKey activationSecret, SigningKeys serverKeys) throws Exception {
        Exchange4 exchange = new Exchange4(algorithm);
        String challenge = UUID.randomUUID().toString();
        ObjectNode claims = Http.JSON.createObjectNode().put("applicationKey", app.key()).put("challenge", challenge);
        if (activationId != null) {
            claims.put("activationId", activationId);
        }
        claims.set("sharedSecretRequest", exchange.request());
        long now = Instant.now().getEpochSecond();
        claims.put("iat", now).put("exp", now + SECONDS);
        SecretKey key = activationId == null
                ? KeyFactory.deriveKeyMacGetAppTempKey(new SecretKeySpec(Base64.getDecoder().decode(app.secret()), "AES"))
                : KeyFactory.deriveKeyMacGetActTempKey(activationSecret);
        String signed = encode("{\"alg\":\"HS384\",\"typ\":\"JWT\"}".getBytes(StandardCharsets.UTF_8)) + "."
                + encode(Http.bytes(claims));
        byte[] mac = new HMACHashUtilities().hash384(key.getEncoded(), signed.getBytes(StandardCharsets.UTF_8));
        byte[] body = Http.bytes(Map.of("requestObject", Map.of("jwt", signed + "." + encode(mac))));
        JsonNode answer = new Http.Request("POST", pawl + "/pa/v4/keystore/create", Map.of(), body, null).exchange();
        JsonNode jws = Http.JSON.readTree(answer.path("responseObject").path("jwt").asText());
        (activationId == null ? app.masterKeys(algorithm) : serverKeys).verify(jws);
        JsonNode said = Http.JSON.readTree(decode(jws.path("payload").asText()));
        Check.equal(challenge, said.path("challenge").asText(), "the challenge of the temporary key");
        return new TemporaryKey4(said.path("sub").asText(), exchange.finish(said.path("sharedSecretResponse")).getEncoded());
    }

    private static String encode(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    private static byte[] decode(String text) {
        return Base64.getUrlDecoder().decode(text);
    }
}
