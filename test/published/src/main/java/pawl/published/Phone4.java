package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.wultra.security.powerauth.crypto.client.v4.activation.PowerAuthClientActivation;
import com.wultra.security.powerauth.crypto.client.v4.token.ClientTokenGenerator;
import com.wultra.security.powerauth.crypto.lib.config.AuthenticationCodeConfiguration;
import com.wultra.security.powerauth.crypto.lib.encryptor.ClientEncryptor;
import com.wultra.security.powerauth.crypto.lib.encryptor.EncryptorFactory;
import com.wultra.security.powerauth.crypto.lib.encryptor.model.EncryptorId;
import com.wultra.security.powerauth.crypto.lib.encryptor.model.EncryptorParameters;
import com.wultra.security.powerauth.crypto.lib.encryptor.model.EncryptorScope;
import com.wultra.security.powerauth.crypto.lib.enums.EcCurve;
import com.wultra.security.powerauth.crypto.lib.enums.ProtocolVersion;
import com.wultra.security.powerauth.crypto.lib.generator.HashBasedCounter;
import com.wultra.security.powerauth.crypto.lib.util.AuthenticationCodeUtils;
import com.wultra.security.powerauth.crypto.lib.util.KeyConvertor;
import com.wultra.security.powerauth.crypto.lib.util.SignatureUtils;
import com.wultra.security.powerauth.crypto.lib.v4.encryptor.model.context.AeadSecrets;
import com.wultra.security.powerauth.crypto.lib.v4.encryptor.model.request.AeadEncryptedRequest;
import com.wultra.security.powerauth.crypto.lib.v4.encryptor.model.response.AeadEncryptedResponse;
import com.wultra.security.powerauth.crypto.lib.v4.kdf.KeyFactory;
import com.wultra.security.powerauth.crypto.lib.v4.kdf.Kmac;
import com.wultra.security.powerauth.crypto.lib.v4.model.context.SharedSecretAlgorithm;
import com.wultra.security.powerauth.http.PowerAuthAuthorizationHttpHeader;
import com.wultra.security.powerauth.http.PowerAuthEncryptionHttpHeader;
import com.wultra.security.powerauth.http.PowerAuthHttpBody;
import com.wultra.security.powerauth.http.PowerAuthRequestCanonizationUtils;
import com.wultra.security.powerauth.http.PowerAuthTokenHttpHeader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import javax.crypto.SecretKey;

/**
 * A phone of the generation 4. powerauth-java-crypto computes and powerauth-java-http writes headers and what is
 * covered; no library of 4.0 is published that makes whole requests.
 */
final class Phone4 implements Phone {

    static final String VERSION = "4.0";

    private static final int NONCE_BYTES = 16;
    private static final int MAC_BYTES = 32;
    private static final int OFFLINE_DIGITS = 8;
    /** Of the status: data, then the MAC. */
    private static final int STATUS_DATA_BYTES = 48;
    private static final byte[] NOTHING = new byte[0];

    private final String pawl;
    private final AppKeys app;
    private final SharedSecretAlgorithm algorithm;
    private String activationId;
    private SecretKey activationSecret;
    private SigningKeys serverKeys;
    private SecretKey knowledge;
    private byte[] counter;

    /** `pawl`: its URL for phones; `application`: as Bank.application gives it. */
    Phone4(String pawl, JsonNode application, SharedSecretAlgorithm algorithm) throws Exception {
        this.pawl = pawl;
        this.algorithm = algorithm;
        this.app = AppKeys.parse(application.path("mobileSdkConfig").asText());
    }

    @Override
    public void activate(String code, String otp) throws Exception {
        bind("CODE", Map.of("code", code), otp).expect(200);
    }

    @Override
    public int activateBy(Map<String, String> identity) throws Exception {
        return bind("DIRECT", identity, null).status();
    }

    @Override
    public String activationId() {
        return activationId;
    }

    /** Exchanges keys, and confirms the activation where they were agreed on. */
    private Http.Reply bind(String type, Map<String, String> identity, String otp) throws Exception {
        TemporaryKey4 temporary = TemporaryKey4.fetch(pawl, app, algorithm, null, null, null);
        Exchange4 exchange = new Exchange4(algorithm);
        ObjectNode inner = Http.JSON.createObjectNode();
        inner.set("sharedSecretRequest", exchange.request());
        inner.set("devicePublicKeys", SigningKeys.generate(algorithm).json());
        inner.put("activationOtp", otp);
        inner.put("activationName", "published phone").put("platform", "ios").put("deviceInfo", "pawl-published");
        Envelope innerEnvelope = envelope(EncryptorId.ACTIVATION_LAYER_2, temporary);
        ObjectNode outer = Http.JSON.createObjectNode().put("type", type);
        outer.set("identityAttributes", Http.JSON.valueToTree(identity));
        outer.putObject("customAttributes");
        outer.set("activationData", innerEnvelope.seal(Http.bytes(inner)));
        Envelope outerEnvelope = envelope(EncryptorId.APPLICATION_SCOPE_GENERIC, temporary);
        Http.Reply reply = new Http.Request("POST", pawl + "/pa/v4/activation/create", encryptionHeader(true),
                Http.bytes(outerEnvelope.seal(Http.bytes(outer))), null).send();
        if (reply.status() != 200) {
            return reply;
        }
        JsonNode answer = Http.JSON.readTree(outerEnvelope.open(reply.body()));
        JsonNode agreed = Http.JSON.readTree(innerEnvelope.open(Http.bytes(answer.path("activationData"))));
        establish(agreed.path("activationId").asText(), exchange, agreed);
        byte[] confirmation = Http.bytes(Map.of("requestObject", Map.of("enableBiometry", true)));
        signed("POST", pawl + "/pa/v4/activation/confirm", "/pa/activation/confirm", confirmation, Factors.POSSESSION_KNOWLEDGE,
                PIN).exchange();
        return reply;
    }

    /** Takes the activation of a phone of 3.3 over, which makes no code any more. Such a phone has no keys yet. */
    void upgrade(Phone3 old) throws Exception {
        Exchange4 exchange = new Exchange4(algorithm);
        ObjectNode plaintext = Http.JSON.createObjectNode().put("enableBiometry", true);
        plaintext.set("sharedSecretRequest", exchange.request());
        plaintext.set("devicePublicKeys", SigningKeys.generate(algorithm).json());
        Envelope envelope = envelope(EncryptorId.UPGRADE_START, TemporaryKey4.fetch(pawl, app, algorithm, null, null, null));
        byte[] body = Http.bytes(envelope.seal(Http.bytes(plaintext)));
        // A code of 3.3 covers the envelope.
        String url = pawl + "/pa/v4/upgrade/start";
        Http.Request start = old.signed("POST", url, "/pa/upgrade/start", body, Factors.POSSESSION_KNOWLEDGE, PIN);
        Map<String, String> headers = encryptionHeader(true);
        headers.putAll(start.headers());
        JsonNode agreed = new Http.Request("POST", url, headers, body, envelope::open).exchange();
        establish(old.activationId(), exchange, agreed);
        signed("POST", pawl + "/pa/v4/upgrade/confirm", "/pa/upgrade/confirm", Http.bytes(Map.of()), Factors.POSSESSION, PIN).exchange();
    }

    private void establish(String id, Exchange4 exchange, JsonNode agreed) throws Exception {
        activationId = id;
        activationSecret = exchange.finish(agreed.path("sharedSecretResponse"));
        serverKeys = SigningKeys.parse(algorithm, agreed.path("serverPublicKeys"));
        counter = Base64.getDecoder().decode(agreed.path("ctrData").asText());
        knowledge = KeyFactory.deriveKeyAuthenticationCodeKnowledge(activationSecret);
    }

    @Override
    public Http.Request signed(String method, String url, String resourceId, byte[] body, Factors factors, String pin)
            throws Exception {
        String query = URI.create(url).getRawQuery();
        byte[] covered = body;
        if (body == null) {
            // Null where the query has nothing to sign.
            String canonical = query == null ? null : PowerAuthRequestCanonizationUtils.canonizeGetParameters(query);
            covered = canonical == null ? NOTHING : canonical.getBytes(StandardCharsets.UTF_8);
        }
        return new Http.Request(method, url, authorization(method, resourceId, covered, factors, pin), body, null);
    }

    @Override
    public Token createToken() throws Exception {
        Envelope envelope = envelope(EncryptorId.CREATE_TOKEN, temporaryKey());
        byte[] body = Http.bytes(envelope.seal(Http.bytes(Map.of())));
        // At this endpoint of pawl the code covers the envelope.
        Map<String, String> headers = authorization("POST", "/pa/token/create", body, Factors.POSSESSION, PIN);
        JsonNode made = new Http.Request("POST", pawl + "/pa/v4/token/create", headers, body, envelope::open).exchange();
        byte[] secret = Base64.getDecoder().decode(made.path("tokenSecret").asText());
        return (method, url, content) -> {
            ClientTokenGenerator generator = new ClientTokenGenerator();
            byte[] nonce = generator.generateTokenNonce();
            byte[] time = generator.generateTokenTimestamp();
            byte[] digest = generator.computeTokenDigest(nonce, time, VERSION, secret);
            String header = new PowerAuthTokenHttpHeader(made.path("tokenId").asText(), Base64.getEncoder().encodeToString(digest),
                    Base64.getEncoder().encodeToString(nonce), new String(time, StandardCharsets.UTF_8), VERSION).buildHttpHeader();
            return new Http.Request(method, url, headers(PowerAuthTokenHttpHeader.HEADER_NAME, header), content, null);
        };
    }

    @Override
    public Http.Request encrypted(String url, byte[] plaintext, boolean isApplicationScope) throws Exception {
        TemporaryKey4 key = isApplicationScope ? TemporaryKey4.fetch(pawl, app, algorithm, null, null, null) : temporaryKey();
        Envelope envelope = envelope(
                isApplicationScope ? EncryptorId.APPLICATION_SCOPE_GENERIC : EncryptorId.ACTIVATION_SCOPE_GENERIC, key);
        return new Http.Request("POST", url, encryptionHeader(isApplicationScope), Http.bytes(envelope.seal(plaintext)),
                envelope::open);
    }

    @Override
    public Http.Request signedEncrypted(String url, String resourceId, byte[] plaintext, String pin) throws Exception {
        Map<String, String> headers = authorization("POST", resourceId, plaintext, Factors.POSSESSION_KNOWLEDGE, pin);
        Http.Request request = encrypted(url, plaintext, false);
        headers.putAll(request.headers());
        return new Http.Request("POST", url, headers, request.body(), request.opener());
    }

    @Override
    public int failedAttempts() throws Exception {
        JsonNode answer = encrypted(pawl + "/pa/v4/activation/status", Http.bytes(Map.of()), false).exchange();
        byte[] blob = Base64.getDecoder().decode(answer.path("activationStatus").asText());
        byte[] data = Arrays.copyOf(blob, STATUS_DATA_BYTES);
        byte[] mac = Arrays.copyOfRange(blob, STATUS_DATA_BYTES, blob.length);
        PowerAuthClientActivation client = new PowerAuthClientActivation();
        SecretKey key = KeyFactory.deriveKeyMacStatus(activationSecret);
        Check.that(client.verifyStatusMac(data, mac, key, ProtocolVersion.V40), "the MAC of the status is wrong");
        return client.getStatusFromBlob(data).getFailedAttempts();
    }

    @Override
    public boolean coversBodyOfGet() {
        return true;
    }

    @Override
    public boolean hasReplayProtection() {
        return true;
    }

    @Override
    public String offlineCode(String text) throws Exception {
        int proof = text.lastIndexOf('\n') + 2;
        byte[] mac = Kmac.kmac256(KeyFactory.deriveKeyMacPersonalizedData(activationSecret),
                text.substring(0, proof).getBytes(StandardCharsets.UTF_8), "PA4MAC-QR".getBytes(StandardCharsets.UTF_8), MAC_BYTES);
        Check.equal("2" + Base64.getEncoder().encodeToString(mac), text.substring(proof - 1), "kind and proof of the text");
        return codeOver(text);
    }

    @Override
    public String offlineCodeForAny(String text) throws Exception {
        int proof = text.lastIndexOf('\n') + 2;
        Check.equal('0', text.charAt(proof - 1), "the kind of the text");
        PublicKey key = new KeyConvertor().convertBytesToPublicKey(EcCurve.P256,
                Base64.getDecoder().decode(app.masterKeys().get(AppKeys.P256)));
        byte[] signed = text.substring(0, proof).getBytes(StandardCharsets.UTF_8);
        byte[] signature = Base64.getDecoder().decode(text.substring(proof));
        Check.that(new SignatureUtils().validateECDSASignature(EcCurve.P256, signed, signature, key),
                "the master key has not signed the text");
        return codeOver(text);
    }

    private String codeOver(String text) throws Exception {
        String[] lines = text.split("\n");
        byte[] body = (lines[0] + "&" + lines[3]).getBytes(StandardCharsets.UTF_8);
        byte[] nonce = Base64.getDecoder().decode(lines[lines.length - 2]);
        String base = PowerAuthHttpBody.getAuthenticationBaseString("POST", "/operation/authorize/offline", nonce, body) + "&offline";
        List<SecretKey> keys = List.of(KeyFactory.deriveKeyAuthenticationCodePossession(activationSecret), knowledge);
        String code = new AuthenticationCodeUtils().computeAuthCode(base.getBytes(StandardCharsets.UTF_8), keys, counter,
                AuthenticationCodeConfiguration.decimal(OFFLINE_DIGITS));
        counter = new HashBasedCounter(VERSION).next(counter);
        return code;
    }

    /** The header; the counter moves. A wrong PIN opens another key than the one of the phone. */
    private Map<String, String> authorization(String method, String resourceId, byte[] covered, Factors factors, String pin)
            throws Exception {
        List<SecretKey> keys = new ArrayList<>(List.of(KeyFactory.deriveKeyAuthenticationCodePossession(activationSecret)));
        if (factors == Factors.POSSESSION_KNOWLEDGE) {
            keys.add(pin.equals(PIN) ? knowledge : KeyFactory.deriveKeyAuthenticationCodeBiometry(activationSecret));
        }
        if (factors == Factors.POSSESSION_BIOMETRY) {
            keys.add(KeyFactory.deriveKeyAuthenticationCodeBiometry(activationSecret));
        }
        byte[] nonce = new byte[NONCE_BYTES];
        new SecureRandom().nextBytes(nonce);
        String base = PowerAuthHttpBody.getAuthenticationBaseString(method, resourceId, nonce, covered) + "&" + app.secret();
        String code = new AuthenticationCodeUtils().computeAuthCode(base.getBytes(StandardCharsets.UTF_8), keys, counter,
                AuthenticationCodeConfiguration.base64());
        counter = new HashBasedCounter(VERSION).next(counter);
        return headers(PowerAuthAuthorizationHttpHeader.HEADER_NAME, new PowerAuthAuthorizationHttpHeader(activationId, app.key(),
                code, factors.name().toLowerCase(Locale.ROOT), Base64.getEncoder().encodeToString(nonce), VERSION).buildHttpHeader());
    }

    private Map<String, String> encryptionHeader(boolean isApplicationScope) {
        PowerAuthEncryptionHttpHeader header = isApplicationScope ? new PowerAuthEncryptionHttpHeader(app.key(), VERSION)
                : new PowerAuthEncryptionHttpHeader(app.key(), activationId, VERSION);
        return headers(PowerAuthEncryptionHttpHeader.HEADER_NAME, header.buildHttpHeader());
    }

    private static Map<String, String> headers(String name, String value) {
        return new TreeMap<>(Map.of(name, value));
    }

    private TemporaryKey4 temporaryKey() throws Exception {
        return TemporaryKey4.fetch(pawl, app, algorithm, activationId, activationSecret, serverKeys);
    }

    private Envelope envelope(EncryptorId label, TemporaryKey4 key) throws Exception {
        boolean isOfActivation = label.scope() == EncryptorScope.ACTIVATION_SCOPE;
        EncryptorParameters parameters = new EncryptorParameters(VERSION, app.key(), isOfActivation ? activationId : null, key.id());
        AeadSecrets secrets = isOfActivation
                ? new AeadSecrets(key.secret(), app.secret(), KeyFactory.deriveKeyE2eeSharedInfo2(activationSecret).getEncoded())
                : new AeadSecrets(key.secret(), app.secret());
        return new Envelope(new EncryptorFactory().getClientEncryptor(label, parameters, secrets));
    }

    /** The encryption of one request and of its answer. */
    private record Envelope(ClientEncryptor<AeadEncryptedRequest, AeadEncryptedResponse> encryptor) {

        ObjectNode seal(byte[] plaintext) throws Exception {
            AeadEncryptedRequest sealed = encryptor.encryptRequest(plaintext);
            return Http.JSON.createObjectNode()
                    .put("temporaryKeyId", sealed.getTemporaryKeyId())
                    .put("encryptedData", sealed.getEncryptedData())
                    .put("nonce", sealed.getNonce())
                    .put("timestamp", sealed.getTimestamp());
        }

        byte[] open(byte[] answer) throws Exception {
            JsonNode json = Http.JSON.readTree(answer);
            Check.that(json.path("encryptedData").isTextual(), "the answer is not encrypted: " + json);
            return encryptor.decryptResponse(
                    new AeadEncryptedResponse(json.path("encryptedData").asText(), json.path("timestamp").asLong()));
        }
    }
}
