package pawl.published;

import com.fasterxml.jackson.databind.JsonNode;
import io.getlime.security.powerauth.crypto.lib.config.SignatureConfiguration;
import io.getlime.security.powerauth.crypto.lib.enums.PowerAuthSignatureTypes;
import io.getlime.security.powerauth.crypto.lib.generator.KeyGenerator;
import io.getlime.security.powerauth.crypto.lib.model.ActivationStatusBlobInfo;
import io.getlime.security.powerauth.crypto.lib.util.KeyConvertor;
import io.getlime.security.powerauth.crypto.lib.util.SignatureUtils;
import io.getlime.security.powerauth.http.PowerAuthHttpBody;
import io.getlime.security.powerauth.lib.cmd.consts.PowerAuthVersion;
import io.getlime.security.powerauth.lib.cmd.consts.StepLoggerType;
import io.getlime.security.powerauth.lib.cmd.header.PowerAuthHeaderFactory;
import io.getlime.security.powerauth.lib.cmd.logging.ObjectStepLogger;
import io.getlime.security.powerauth.lib.cmd.logging.StepLoggerFactory;
import io.getlime.security.powerauth.lib.cmd.logging.model.StepItem;
import io.getlime.security.powerauth.lib.cmd.status.ResultStatusService;
import io.getlime.security.powerauth.lib.cmd.steps.AbstractBaseStep;
import io.getlime.security.powerauth.lib.cmd.steps.ComputeOfflineSignatureStep;
import io.getlime.security.powerauth.lib.cmd.steps.VerifySignatureStep;
import io.getlime.security.powerauth.lib.cmd.steps.VerifyTokenStep;
import io.getlime.security.powerauth.lib.cmd.steps.context.RequestContext;
import io.getlime.security.powerauth.lib.cmd.steps.context.StepContext;
import io.getlime.security.powerauth.lib.cmd.steps.model.BaseStepModel;
import io.getlime.security.powerauth.lib.cmd.steps.model.ComputeOfflineSignatureStepModel;
import io.getlime.security.powerauth.lib.cmd.steps.model.CreateActivationStepModel;
import io.getlime.security.powerauth.lib.cmd.steps.model.CreateTokenStepModel;
import io.getlime.security.powerauth.lib.cmd.steps.model.EncryptStepModel;
import io.getlime.security.powerauth.lib.cmd.steps.model.GetStatusStepModel;
import io.getlime.security.powerauth.lib.cmd.steps.model.PrepareActivationStepModel;
import io.getlime.security.powerauth.lib.cmd.steps.model.VerifySignatureStepModel;
import io.getlime.security.powerauth.lib.cmd.steps.model.VerifyTokenStepModel;
import io.getlime.security.powerauth.lib.cmd.steps.model.data.BaseStepData;
import io.getlime.security.powerauth.lib.cmd.steps.pojo.ResultStatusObject;
import io.getlime.security.powerauth.lib.cmd.steps.v3.CreateActivationStep;
import io.getlime.security.powerauth.lib.cmd.steps.v3.CreateTokenStep;
import io.getlime.security.powerauth.lib.cmd.steps.v3.EncryptStep;
import io.getlime.security.powerauth.lib.cmd.steps.v3.GetStatusStep;
import io.getlime.security.powerauth.lib.cmd.steps.v3.PrepareActivationStep;
import io.getlime.security.powerauth.lib.cmd.steps.v3.SignAndEncryptStep;
import io.getlime.security.powerauth.lib.cmd.util.CounterUtil;
import io.getlime.security.powerauth.lib.cmd.util.EncryptedStorageUtil;
import io.getlime.security.powerauth.lib.cmd.util.HttpUtil;
import io.getlime.security.powerauth.rest.api.model.entity.ActivationType;
import io.getlime.security.powerauth.rest.api.model.request.ActivationLayer1Request;
import io.getlime.security.powerauth.rest.api.model.request.EciesEncryptedRequest;
import io.getlime.security.powerauth.rest.api.model.response.EciesEncryptedResponse;
import java.nio.charset.StandardCharsets;
import java.security.PublicKey;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.crypto.SecretKey;

/** A phone of the generation 3: the steps of powerauth-java-cmd-lib, with their state in memory. */
final class Phone3 implements Phone {

    private static final ResultStatusService IN_MEMORY = status -> { };
    private static final StepLoggerFactory NO_LOG = new StepLoggerFactory(StepLoggerType.DISABLED);
    private static final PowerAuthHeaderFactory HEADERS = new PowerAuthHeaderFactory();
    private static final VerifySignatureStep SIGN = new VerifySignatureStep(HEADERS, IN_MEMORY, NO_LOG);
    private static final ComputeOfflineSignatureStep OFFLINE = new ComputeOfflineSignatureStep(IN_MEMORY, NO_LOG);
    private static final EncryptStep ENCRYPT = new EncryptStep(IN_MEMORY, NO_LOG);
    private static final SignAndEncryptStep SIGN_AND_ENCRYPT = new SignAndEncryptStep(HEADERS, IN_MEMORY, NO_LOG);
    private static final VerifyTokenStep TOKEN = new VerifyTokenStep(HEADERS, IN_MEMORY, NO_LOG);
    /** The library names the type CUSTOM and no other, and only DIRECT is for a login. */
    private static final CreateActivationStep CREATE = new CreateActivationStep(HEADERS, IN_MEMORY, NO_LOG) {
        @Override
        protected ActivationLayer1Request prepareLayer1Request(
                StepContext<CreateActivationStepModel, EciesEncryptedResponse> context, EciesEncryptedRequest inner) {
            ActivationLayer1Request request = super.prepareLayer1Request(context, inner);
            request.setType(ActivationType.DIRECT);
            return request;
        }
    };

    private final String pawl;
    private final String key;
    private final String secret;
    private final PublicKey masterKey;
    private final PowerAuthVersion version;
    private final ResultStatusObject state = new ResultStatusObject();

    /** `pawl`: its URL for phones; `application`: as Bank.application gives it. */
    Phone3(String pawl, JsonNode application, PowerAuthVersion version) throws Exception {
        this.pawl = pawl;
        this.key = application.path("appKey").asText();
        this.secret = application.path("appSecret").asText();
        byte[] point = Base64.getDecoder().decode(application.path("masterServerPublicKey").asText());
        this.masterKey = new KeyConvertor().convertBytesToPublicKey(point);
        this.version = version;
    }

    @Override
    public void activate(String code, String otp) throws Exception {
        PrepareActivationStepModel model = at(pawl, new PrepareActivationStepModel());
        model.setActivationCode(code);
        model.setAdditionalActivationOtp(otp);
        model.setActivationName("published phone");
        model.setPlatform("android");
        model.setDeviceInfo("pawl-published");
        model.setApplicationKey(key);
        model.setApplicationSecret(secret);
        model.setMasterPublicKey(masterKey);
        model.setPassword(PIN);
        succeed(new PrepareActivationStep(HEADERS, IN_MEMORY, NO_LOG), model);
    }

    @Override
    public int activateBy(Map<String, String> identity) throws Exception {
        CreateActivationStepModel model = at(pawl, new CreateActivationStepModel());
        model.setIdentityAttributes(identity);
        model.setCustomAttributes(Map.of());
        model.setActivationName("published phone");
        model.setPlatform("android");
        model.setDeviceInfo("pawl-published");
        model.setApplicationKey(key);
        model.setApplicationSecret(secret);
        model.setMasterPublicKey(masterKey);
        model.setPassword(PIN);
        return send(CREATE, model);
    }

    @Override
    public String activationId() {
        return state.getActivationId();
    }

    @Override
    public Http.Request signed(String method, String url, String resourceId, byte[] body, Factors factors, String pin)
            throws Exception {
        return prepare(SIGN, null, signature(method, url, resourceId, body, factors, pin));
    }

    @Override
    public Token createToken() throws Exception {
        Map<?, ?> made = makeToken();
        return (method, url, body) -> prepare(TOKEN, null, token(made, method, url, body));
    }

    @Override
    public Http.Request encrypted(String url, byte[] plaintext, boolean isApplicationScope) throws Exception {
        return prepare(ENCRYPT, EciesEncryptedResponse.class, encryption(url, plaintext, isApplicationScope));
    }

    @Override
    public Http.Request signedEncrypted(String url, String resourceId, byte[] plaintext, String pin) throws Exception {
        VerifySignatureStepModel model = signature("POST", url, resourceId, plaintext, Factors.POSSESSION_KNOWLEDGE, pin);
        return prepare(SIGN_AND_ENCRYPT, EciesEncryptedResponse.class, model);
    }

    @Override
    public int failedAttempts() throws Exception {
        ObjectStepLogger log = succeed(new GetStatusStep(IN_MEMORY, NO_LOG), at(pawl, new GetStatusStepModel()));
        ActivationStatusBlobInfo blob = (ActivationStatusBlobInfo) map(log, "Activation Status").get("statusBlob");
        return blob.getFailedAttempts();
    }

    @Override
    public boolean coversBodyOfGet() {
        return false;
    }

    @Override
    public boolean hasReplayProtection() {
        return version != PowerAuthVersion.V3_0 && version != PowerAuthVersion.V3_1;
    }

    // The same, sent by the library itself over the HTTP layer that it has. Each gives the status.

    int sendSigned(String method, String url, String resourceId, byte[] body) throws Exception {
        return send(SIGN, signature(method, url, resourceId, body, Factors.POSSESSION_KNOWLEDGE, PIN));
    }

    int sendToken(String url) throws Exception {
        return send(TOKEN, token(makeToken(), "GET", url, null));
    }

    int sendEncrypted(String url, byte[] plaintext) throws Exception {
        return send(ENCRYPT, encryption(url, plaintext, false));
    }

    int sendSignedEncrypted(String url, String resourceId, byte[] plaintext) throws Exception {
        return send(SIGN_AND_ENCRYPT, signature("POST", url, resourceId, plaintext, Factors.POSSESSION_KNOWLEDGE, PIN));
    }

    @Override
    public String offlineCode(String text) throws Exception {
        ComputeOfflineSignatureStepModel model = at(pawl, new ComputeOfflineSignatureStepModel());
        model.setQrCodeData(text);
        model.setPassword(PIN);
        ObjectStepLogger log = new ObjectStepLogger();
        // It sends nothing, so that the library says of no success.
        OFFLINE.execute(log, model.toMap());
        return (String) map(log, "Offline Signature Computation Finished").get("offlineSignature");
    }

    /** The step of the library takes no such text; what it is made of does. */
    @Override
    public String offlineCodeForAny(String text) throws Exception {
        ComputeOfflineSignatureStepModel model = at(pawl, new ComputeOfflineSignatureStepModel());
        model.setQrCodeData(text);
        model.setPassword(PIN);
        ObjectStepLogger log = new ObjectStepLogger();
        OFFLINE.execute(log, model.toMap());
        Check.that(log.getFirstItemByName("Offline Signature Computation Finished") == null, "the step of the library takes it now");
        int proof = text.lastIndexOf('\n') + 2;
        Check.equal('0', text.charAt(proof - 1), "the kind of the text");
        byte[] signed = text.substring(0, proof).getBytes(StandardCharsets.UTF_8);
        byte[] signature = Base64.getDecoder().decode(text.substring(proof));
        Check.that(new SignatureUtils().validateECDSASignature(signed, signature, masterKey), "the master key has not signed the text");
        String[] lines = text.split("\n");
        byte[] body = (lines[0] + "&" + lines[3]).getBytes(StandardCharsets.UTF_8);
        byte[] nonce = Base64.getDecoder().decode(lines[lines.length - 2]);
        String base = PowerAuthHttpBody.getSignatureBaseString("POST", "/operation/authorize/offline", nonce, body) + "&offline";
        SecretKey knowledge = EncryptedStorageUtil.getSignatureKnowledgeKey(PIN.toCharArray(),
                state.getSignatureKnowledgeKeyEncryptedBytes(), state.getSignatureKnowledgeKeySaltBytes(), new KeyGenerator());
        String code = new SignatureUtils().computePowerAuthSignature(base.getBytes(StandardCharsets.UTF_8),
                List.of(state.getSignaturePossessionKeyObject(), knowledge), CounterUtil.getCtrData(state, log),
                SignatureConfiguration.decimal());
        CounterUtil.incrementCounter(model);
        return code;
    }

    private VerifySignatureStepModel signature(String method, String url, String resourceId, byte[] body, Factors factors,
            String pin) {
        VerifySignatureStepModel model = at(url, new VerifySignatureStepModel());
        model.setApplicationKey(key);
        model.setApplicationSecret(secret);
        model.setHttpMethod(method);
        model.setResourceId(resourceId);
        model.setSignatureType(PowerAuthSignatureTypes.valueOf(factors.name()));
        model.setData(body);
        model.setPassword(pin);
        return model;
    }

    private EncryptStepModel encryption(String url, byte[] plaintext, boolean isApplicationScope) {
        EncryptStepModel model = at(url, new EncryptStepModel());
        model.setApplicationKey(key);
        model.setApplicationSecret(secret);
        model.setMasterPublicKey(masterKey);
        model.setScope(isApplicationScope ? "application" : "activation");
        model.setData(plaintext);
        return model;
    }

    private Map<?, ?> makeToken() throws Exception {
        CreateTokenStepModel create = at(pawl, new CreateTokenStepModel());
        create.setApplicationKey(key);
        create.setApplicationSecret(secret);
        create.setMasterPublicKey(masterKey);
        create.setSignatureType(PowerAuthSignatureTypes.POSSESSION);
        create.setPassword(PIN);
        return map(succeed(new CreateTokenStep(HEADERS, IN_MEMORY, NO_LOG), create), "Token successfully obtained");
    }

    private VerifyTokenStepModel token(Map<?, ?> made, String method, String url, byte[] body) {
        VerifyTokenStepModel model = at(url, new VerifyTokenStepModel());
        model.setTokenId((String) made.get("tokenId"));
        model.setTokenSecret((String) made.get("tokenSecret"));
        model.setHttpMethod(method);
        model.setData(body);
        return model;
    }

    private <T extends BaseStepModel> T at(String url, T model) {
        model.setUriString(url);
        // Temporary keys come from pawl, whoever the request is for.
        model.setBaseUriString(pawl);
        model.setHeaders(new HashMap<>());
        model.setResultStatus(state);
        model.setVersion(version);
        return model;
    }

    /** `answer`: of an encrypted one; null where it is plain. */
    private <M extends BaseStepData, R> Http.Request prepare(AbstractBaseStep<M, R> step, Class<R> answer, BaseStepModel model)
            throws Exception {
        ObjectStepLogger log = new ObjectStepLogger();
        StepContext<M, R> context = step.prepareStepContext(log, model.toMap());
        Check.that(context != null, "the library made no request: " + log.getErrors());
        RequestContext request = context.getRequestContext();
        byte[] body = HttpUtil.toRequestBytes(request.getRequestObject());
        Http.Opener opener = bytes -> {
            step.processResponse(context, bytes, answer);
            return item(log, "Decrypted Response").toString().getBytes(StandardCharsets.UTF_8);
        };
        String method = model instanceof VerifySignatureStepModel signed ? signed.getHttpMethod() : request.getHttpMethod().name();
        boolean isBodyless = body == null || body.length == 0 || method.equals("GET");
        return new Http.Request(method, request.getUri(), new TreeMap<>(request.getHttpHeaders()), isBodyless ? null : body,
                answer == null ? null : opener);
    }

    private static int send(AbstractBaseStep<?, ?> step, BaseStepModel model) throws Exception {
        ObjectStepLogger log = new ObjectStepLogger();
        step.execute(log, model.toMap());
        Check.that(log.getResponse() != null, "the library got no answer: " + log.getErrors());
        int status = log.getResponse().statusCode();
        Check.that(status != 200 || log.getErrors().isEmpty(), "the library cannot read the answer: " + log.getErrors());
        return status;
    }

    private static ObjectStepLogger succeed(AbstractBaseStep<?, ?> step, BaseStepModel model) throws Exception {
        ObjectStepLogger log = new ObjectStepLogger();
        step.execute(log, model.toMap());
        boolean isDone = log.getResult() != null && log.getResult().success();
        Check.that(isDone, "the library failed: " + log.getErrors() + " " + log.getResponse());
        return log;
    }

    private static Object item(ObjectStepLogger log, String name) {
        StepItem item = log.getFirstItemByName(name);
        Check.that(item != null, "the library did not say \"" + name + "\": " + log.getErrors());
        return item.object();
    }

    private static Map<?, ?> map(ObjectStepLogger log, String name) {
        return (Map<?, ?>) item(log, name);
    }
}
