package pawl.published.spring;

import com.fasterxml.jackson.databind.JsonNode;
import com.wultra.security.powerauth.client.PowerAuthClient;
import io.getlime.security.powerauth.crypto.lib.enums.PowerAuthSignatureTypes;
import io.getlime.security.powerauth.rest.api.spring.annotation.EncryptedRequestBody;
import io.getlime.security.powerauth.rest.api.spring.annotation.PowerAuth;
import io.getlime.security.powerauth.rest.api.spring.annotation.PowerAuthEncryption;
import io.getlime.security.powerauth.rest.api.spring.annotation.PowerAuthToken;
import io.getlime.security.powerauth.rest.api.spring.authentication.PowerAuthApiAuthentication;
import io.getlime.security.powerauth.rest.api.spring.encryption.EncryptionContext;
import io.getlime.security.powerauth.rest.api.spring.encryption.EncryptionScope;
import java.util.Map;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;
import pawl.published.client.ClientCalls;

/** What the phones call, by annotations of the library, and the client itself below /PowerAuthRestClient. */
@RestController
public class Endpoints {

    private final ClientCalls client;

    public Endpoints(PowerAuthClient client) {
        this.client = new ClientCalls(client);
    }

    @PostMapping("/login")
    @PowerAuth(resourceId = "/login")
    public Map<String, Object> login(PowerAuthApiAuthentication authentication) {
        return told(authentication);
    }

    @GetMapping("/payments")
    @PowerAuth(resourceId = "/payments")
    public Map<String, Object> payments(PowerAuthApiAuthentication authentication) {
        return told(authentication);
    }

    @GetMapping("/accounts")
    @PowerAuthToken(signatureType = {PowerAuthSignatureTypes.POSSESSION, PowerAuthSignatureTypes.POSSESSION_KNOWLEDGE})
    public Map<String, Object> accounts(PowerAuthApiAuthentication authentication) {
        return told(authentication);
    }

    @PostMapping("/statement")
    @PowerAuthEncryption(scope = EncryptionScope.ACTIVATION_SCOPE)
    public Map<String, Object> statement(@EncryptedRequestBody Map<String, Object> request, EncryptionContext context) {
        return echo(request, context);
    }

    @PostMapping("/questions")
    @PowerAuthEncryption(scope = EncryptionScope.APPLICATION_SCOPE)
    public Map<String, Object> questions(@EncryptedRequestBody Map<String, Object> request, EncryptionContext context) {
        return echo(request, context);
    }

    @PostMapping("/limits")
    @PowerAuth(resourceId = "/limits")
    @PowerAuthEncryption(scope = EncryptionScope.ACTIVATION_SCOPE)
    public Map<String, Object> limits(@EncryptedRequestBody Map<String, Object> request, EncryptionContext context,
            PowerAuthApiAuthentication authentication) {
        told(authentication);
        return echo(request, context);
    }

    @PostMapping(path = "/PowerAuthRestClient/{method}", produces = MediaType.APPLICATION_JSON_VALUE)
    public ResponseEntity<byte[]> client(@PathVariable("method") String method, @RequestBody(required = false) JsonNode request)
            throws Exception {
        ClientCalls.Answer answer = client.call(method, request);
        return ResponseEntity.status(answer.status()).body((byte[]) answer.body());
    }

    private static Map<String, Object> told(PowerAuthApiAuthentication authentication) {
        if (authentication == null) {
            throw new ResponseStatusException(HttpStatus.UNAUTHORIZED);
        }
        return Map.of("hello", authentication.getUserId(), "provenBy",
                authentication.getAuthenticationContext().getSignatureType().name(), "application", authentication.getApplicationId());
    }

    private static Map<String, Object> echo(Map<String, Object> request, EncryptionContext context) {
        if (context == null || request == null) {
            throw new ResponseStatusException(HttpStatus.BAD_REQUEST);
        }
        return Map.of("opened", request);
    }
}
