package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.wultra.security.powerauth.crypto.lib.v4.model.context.SharedSecretAlgorithm;
import com.wultra.security.powerauth.crypto.lib.v4.model.request.DefaultSharedSecretRequest;
import com.wultra.security.powerauth.crypto.lib.v4.model.request.RequestCryptogram;
import com.wultra.security.powerauth.crypto.lib.v4.model.response.DefaultSharedSecretResponse;
import com.wultra.security.powerauth.crypto.lib.v4.sharedsecret.SharedSecretFactory;
import java.util.ArrayList;
import java.util.List;
import javax.crypto.SecretKey;

/** One agreement on a secret, the phone's side. */
final class Exchange4 {

    private final SharedSecretAlgorithm algorithm;
    private final RequestCryptogram cryptogram;

    Exchange4(SharedSecretAlgorithm algorithm) throws Exception {
        this.algorithm = algorithm;
        cryptogram = SharedSecretFactory.forAlgorithm(algorithm).generateRequestCryptogram();
    }

    ObjectNode request() {
        DefaultSharedSecretRequest request = (DefaultSharedSecretRequest) cryptogram.getSharedSecretRequest();
        ObjectNode json = Http.JSON.createObjectNode().put("algorithm", request.getAlgorithm().name());
        request.getEncapsulationKeys().forEach(json.putArray("encapsulationKeys")::add);
        return json;
    }

    SecretKey finish(JsonNode response) throws Exception {
        List<String> keys = new ArrayList<>();
        response.path("encapsulatedKeys").forEach(key -> keys.add(key.asText()));
        return SharedSecretFactory.forAlgorithm(algorithm).computeSharedSecret(
                cryptogram.getSharedSecretClientContext(), new DefaultSharedSecretResponse(response.path("salt").asText(), keys));
    }
}
