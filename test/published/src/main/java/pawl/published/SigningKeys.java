package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.wultra.security.powerauth.crypto.client.v4.activation.PowerAuthClientActivation;
import com.wultra.security.powerauth.crypto.lib.enums.EcCurve;
import com.wultra.security.powerauth.crypto.lib.util.KeyConvertor;
import com.wultra.security.powerauth.crypto.lib.v4.ml.MlDsa;
import com.wultra.security.powerauth.crypto.lib.v4.ml.MlDsaKeyConvertor;
import com.wultra.security.powerauth.crypto.lib.v4.model.context.SharedSecretAlgorithm;
import java.nio.charset.StandardCharsets;
import java.security.PublicKey;
import java.security.Signature;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.bouncycastle.jcajce.spec.MLDSAParameterSpec;

/** Public keys by which one party signs, Base64. `ecdsa`: a point of P-384; `mldsa`: SubjectPublicKeyInfo, null for EC_P384. */
record SigningKeys(SharedSecretAlgorithm algorithm, String ecdsa, String mldsa) {

    static final List<SharedSecretAlgorithm> HYBRIDS =
            List.of(SharedSecretAlgorithm.EC_P384_ML_L3, SharedSecretAlgorithm.EC_P384_ML_L5);

    /** Of a new phone, which signs nothing here. */
    static SigningKeys generate(SharedSecretAlgorithm algorithm) throws Exception {
        PowerAuthClientActivation client = new PowerAuthClientActivation();
        byte[] point = new KeyConvertor().convertPublicKeyToBytes(EcCurve.P384, client.generateDeviceEcKeyPair().getPublic());
        byte[] spki = HYBRIDS.contains(algorithm) ? client.generateDevicePqcKeyPair(algorithm).getPublic().getEncoded() : null;
        Base64.Encoder base64 = Base64.getEncoder();
        return new SigningKeys(algorithm, base64.encodeToString(point), spki == null ? null : base64.encodeToString(spki));
    }

    /** As an answer of pawl has them. */
    static SigningKeys parse(SharedSecretAlgorithm algorithm, JsonNode json) {
        return new SigningKeys(algorithm, json.path("ecdsa").asText(), json.path("mldsa").textValue());
    }

    ObjectNode json() {
        ObjectNode json = Http.JSON.createObjectNode().put("ecdsa", ecdsa);
        return mldsa == null ? json : json.put("mldsa", mldsa);
    }

    /** Every algorithm has signed, each once. */
    void verify(JsonNode jws) throws Exception {
        Map<String, byte[]> signatures = new TreeMap<>();
        Map<String, byte[]> messages = new TreeMap<>();
        Base64.Decoder base64 = Base64.getUrlDecoder();
        for (JsonNode one : jws.path("signatures")) {
            String header = one.path("protected").asText();
            String name = Http.JSON.readTree(base64.decode(header)).path("alg").asText();
            messages.put(name, (header + "." + jws.path("payload").asText()).getBytes(StandardCharsets.UTF_8));
            Check.that(signatures.put(name, base64.decode(one.path("signature").asText())) == null, name + " signs twice");
        }
        Check.equal(mldsa == null ? 1 : 2, signatures.size(), "the number of signatures of pawl");
        PublicKey point = new KeyConvertor().convertBytesToPublicKey(EcCurve.P384, Base64.getDecoder().decode(ecdsa));
        Signature signature = Signature.getInstance("SHA384withPLAIN-ECDSA", "BC");
        signature.initVerify(point);
        signature.update(messages.get("ES384"));
        Check.that(signature.verify(signatures.get("ES384")), "the signature ES384 is not of pawl");
        if (mldsa == null) {
            return;
        }
        boolean isLarge = algorithm == SharedSecretAlgorithm.EC_P384_ML_L5;
        String name = isLarge ? "ML-DSA-87" : "ML-DSA-65";
        PublicKey key = new MlDsaKeyConvertor(name).convertBytesToPublicKey(Base64.getDecoder().decode(mldsa));
        MlDsa mlDsa = new MlDsa(isLarge ? MLDSAParameterSpec.ml_dsa_87 : MLDSAParameterSpec.ml_dsa_65);
        Check.that(mlDsa.verify(key, messages.get(name), signatures.get(name)), "the signature " + name + " is not of pawl");
    }
}
